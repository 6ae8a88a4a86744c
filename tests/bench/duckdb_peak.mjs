// duckdb_peak.mjs LOG: the peak and the totals by stack, and nothing else, by DuckDB; prints the seconds that took.
import { DuckDBInstance } from "@duckdb/node-api";

const instance = await DuckDBInstance.create(":memory:");
const connection = await instance.connect();
const begin = process.hrtime.bigint();
await connection.run(`CREATE TEMP TABLE changes AS SELECT seq, stack_id, CASE WHEN action = 'allocate' THEN bytes ELSE -bytes END AS change
  FROM read_csv('${process.argv[2]}', header = true) WHERE action IN ('allocate', 'deallocate') AND result = 'ok'`);
const peak = (await connection.runAndReadAll("SELECT MAX(live) FROM (SELECT SUM(change) OVER (ORDER BY seq) AS live FROM changes)")).getRows();
const stacks = (await connection.runAndReadAll("SELECT stack_id, COUNT(*), SUM(change) FROM changes WHERE change > 0 GROUP BY stack_id")).getRows();
console.error(`peak ${peak[0][0]}, ${stacks.length} stacks`);
console.log((Number(process.hrtime.bigint() - begin) / 1e9).toFixed(2));
