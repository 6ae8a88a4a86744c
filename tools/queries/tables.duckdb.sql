-- The logs of a run as tables, for DuckDB: set the folder first, SET VARIABLE folder = 'xlog.train.20261129-120000';
-- The other statements here are plain SQL. In Spark: make the tables `events` and `frames` of the same files
-- (option header, pathGlobFilter "*[0-9].csv" and "*.stacks.csv"), with the file's name as column `file`.
CREATE OR REPLACE VIEW events AS
SELECT regexp_replace(filename, '\.csv$', '') AS file, *
FROM read_csv(getvariable('folder') || '/*[0-9].csv', header = true, filename = true, union_by_name = true, ignore_errors = true,
              null_padding = true, auto_type_candidates = ['VARCHAR'], types = {'time': 'BIGINT', 'thread': 'BIGINT',
              'bytes': 'BIGINT', 'device': 'BIGINT', 'seq': 'BIGINT', 'generation': 'BIGINT', 'live_bytes': 'HUGEINT',
              'elapsed_ns': 'BIGINT', 'stack_id': 'BIGINT'});
CREATE OR REPLACE VIEW frames AS
SELECT regexp_replace(filename, '\.stacks\.csv$', '') AS file, *
FROM read_csv(getvariable('folder') || '/*.stacks.csv', header = true, filename = true, union_by_name = true,
              auto_type_candidates = ['VARCHAR'], types = {'stack_id': 'BIGINT', 'depth': 'BIGINT', 'line': 'BIGINT'});
