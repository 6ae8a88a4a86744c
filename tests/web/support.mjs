// What the tests of reports share: the command, the golden logs, a database over a folder of logs.
import { DuckDBInstance } from "@duckdb/node-api";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const root = process.env.XLOG_ROOT;
export const build = process.env.XLOG_BUILD;
export const goldens = ["h200-driver", "h200-tensors", "training"].map((name) => join(root, "tests/golden", name));

export function xlog(...args) {
  const run = spawnSync(join(build, "xlog"), args, { encoding: "utf8", maxBuffer: 1 << 28 });
  return { status: run.status, out: run.stdout, err: run.stderr };
}

export function report(...args) {
  return JSON.parse(xlog("report", "--json", ...args).out);
}

export const query = (name) => readFileSync(join(root, "tools/queries", `${name}.sql`), "utf8");

// Answers rows as objects; numbers as Number, which holds what these logs have exactly.
export async function database(folder) {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  await connection.run(`SET VARIABLE folder = '${folder}'`);
  for (const statement of query("tables.duckdb").split(/;\s*\n/).filter((text) => text.includes("CREATE"))) await connection.run(statement);
  await connection.run(query("changes"));
  return async (sql) => {
    const rows = (await connection.runAndReadAll(sql)).getRowObjects();
    const plain = (value) => (typeof value === "bigint" || (value && typeof value === "object") ? Number(value) : value);
    return rows.map((row) => Object.fromEntries(Object.entries(row).map(([key, value]) => [key, plain(value)])));
  };
}

export const logs = (folder) => readdirSync(folder).filter((name) => /\d\.csv$/.test(name));
