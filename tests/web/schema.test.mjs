// What the commands write with --json is what tools/report/report.schema.json says, and nothing else.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import test from "node:test";
import Ajv from "ajv/dist/2020.js";
import { goldens, root, xlog } from "./support.mjs";

const schema = JSON.parse(readFileSync(join(root, "tools/report/report.schema.json"), "utf8"));
const ajv = new Ajv({ allErrors: true, strict: false });
ajv.addSchema(schema, "xlog");

function holds(name, text) {
  const validate = ajv.getSchema(`xlog#/$defs/${name}`);
  const good = validate(JSON.parse(text));
  assert.ok(good, `${name}: ${ajv.errorsText(validate.errors)}`);
}

for (const folder of goldens) {
  test(folder.split("/").pop(), () => {
    holds("report", xlog("report", "--json", folder).out);
    holds("report", xlog("report", "--json", "--at", "peak", folder).out);
    holds("ooms", xlog("report", "--json", "--oom", folder).out);
    for (const name of readdirSync(folder).filter((each) => each.includes(".oom."))) holds("oom", readFileSync(join(folder, name), "utf8"));
    for (const by of ["stack", "thread", "stream", "kind", "tag", "query", "process", "device", "library"]) holds("split", xlog("report", "--json", "--by", by, folder).out);
    holds("check", xlog("check", "--json", "--max-peak", "1M", "--no-leaks", folder).out);
    if (folder !== goldens[2]) holds("baseline", xlog("check", "--write-baseline", "-", folder).out);  // whose last row is cut
    holds("diff", xlog("diff", "--json", folder, goldens[0]).out);
    holds("simulation", xlog("simulate", "--json", "--gpu", "1G", folder).out);
    holds("simulation", xlog("simulate", "--json", "--gpu", "4T", folder).out);
    const ptr = /allocate,(0x[0-9a-f]+)/.exec(readFileSync(join(folder, readdirSync(folder).find((each) => /\d\.csv$/.test(each))), "utf8"))[1];
    const { out, status } = xlog("whatis", "--json", ptr, folder);
    holds("whatis", out);
    assert.equal(status, 0);
    assert.equal(JSON.parse(out).found, true);
    holds("whatis", xlog("whatis", "--json", "0x10", folder).out);
  });
}

test("doctor", () => holds("doctor", xlog("doctor", "--json", "--", "sh").out));

test("many GPUs", () => {
  const folder = mkdtempSync(join(tmpdir(), "xlog-gpus-"));
  const header = "thread,time,action,ptr,bytes,device,seq,generation,kind,result,stack_id";
  const rows = Array.from({ length: 9 }, (_, i) => `1,${1700000000000000000n + BigInt(i)},allocate,0x7f00000${i}0000,512,${i},${i + 1},${i + 1},plain,ok,1`);
  writeFileSync(join(folder, "x.1.csv"), [header, ...rows, ""].join("\n"));
  const { out } = xlog("report", "--json", folder);
  rmSync(folder, { recursive: true });
  holds("report", out);
  assert.equal(JSON.parse(out).all_gpus.peak_bytes, 9 * 512);
});
