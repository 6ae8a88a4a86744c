// A directory of many ranks is one run; the statements in tools/queries answer the same of it.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { database, query, report, root, xlog } from "./support.mjs";

// Eight ranks of one program, the sixth of which has a block more.
function ranks() {
  const folder = mkdtempSync(join(tmpdir(), "xlog-ranks-"));
  const golden = join(root, "tests/golden/h200-tensors/python3.100");
  const [csv, stacks, info] = [".csv", ".stacks.csv", ".run.json"].map((end) => readFileSync(golden + end, "utf8"));
  for (let rank = 0; rank < 8; ++rank) {
    const pid = 200 + rank;
    const uuid = `GPU-8b7fe9f7-07cd-acfd-6767-00000000000${rank}`;
    const more = csv.trim().split("\n").at(-2).split(",");
    let rows = csv;
    if (rank === 5) {  // before all others
      const first = csv.split("\n")[1].split(",");
      first[2] = "allocate"; first[3] = "0x700000000000"; first[4] = String(1 << 30); first[6] = "0"; first[9] = "1"; first[10] = "999999"; first[11] = "plain"; first[12] = "cuMemAlloc_v2"; first[13] = "ok"; first[14] = ""; first[17] = "1";
      rows = csv.split("\n").map((line, i) => (i === 0 || !line ? line : line.replace(/^((?:[^,]*,){9})(\d+)/, (_, head, seq) => head + (Number(seq) + 1)))).join("\n");
      rows = rows.replace("\n", `\n${first.join(",")}\n`);
    }
    writeFileSync(join(folder, `python3.${pid}.csv`), rows);
    writeFileSync(join(folder, `python3.${pid}.stacks.csv`), stacks);
    writeFileSync(join(folder, `python3.${pid}.run.json`), JSON.stringify({ ...JSON.parse(info), pid, gpus: [{ ...JSON.parse(info).gpus[0], uuid }] }));
    assert.ok(more);
  }
  return folder;
}

test("ranks of a run", async (t) => {
  const folder = ranks();
  t.after(() => rmSync(folder, { recursive: true }));
  const json = report(folder);
  const ask = await database(folder);
  await t.test("peak per rank", async () => {
    const rows = await ask(query("peak_per_rank"));
    assert.equal(rows.length, 8);
    const peaks = new Map(json.processes.map((each) => [each.log.replace(/\.csv$/, ""), each.peak_bytes]));
    for (const row of rows) assert.equal(peaks.get(row.file), row.peak_bytes);
  });
  await t.test("top stacks over all ranks", async () => {
    const rows = await ask(query("top_stacks"));
    assert.equal(rows[0].ranks, 8);
    const folded = xlog("export", "folded", "--what", "total", folder).out.trim().split("\n");
    const totals = folded.map((line) => Number(line.slice(line.lastIndexOf(" ") + 1)));
    const [all] = await ask("SELECT SUM(bytes) AS bytes FROM events WHERE action = 'allocate' AND result = 'ok'");
    assert.equal(totals.reduce((a, b) => a + b, 0), all.bytes);
  });
  await t.test("ranks that differ", async () => {
    const rows = await ask(query("ranks_that_differ"));
    assert.equal(rows.length, 1);
    assert.match(rows[0].file, /python3\.205$/);
    const text = xlog("report", "--full", folder).out;
    assert.match(text, /Peak of each process, on all its GPUs: min .*, average .*, max .*, over 8 processes/);
    assert.match(text, /205 .* \S+ GiB  more than most/);
    assert.equal([...text.matchAll(/than most/g)].length, 1);
  });
});
