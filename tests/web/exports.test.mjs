// Exports, opened by what people open them with: speedscope itself in a browser, its schema, a decoder of pprof, Prometheus's
// parser of OpenMetrics, DuckDB for what it writes as Parquet.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test from "node:test";
import { gunzipSync } from "node:zlib";
import Ajv from "ajv";
import { Profile } from "pprof-format";
import puppeteer from "puppeteer-core";
import { database, goldens, query, report, xlog } from "./support.mjs";

const require = createRequire(import.meta.url);
const speedscope = join(dirname(require.resolve("speedscope/package.json")), "dist/release");
const folder = mkdtempSync(join(tmpdir(), "xlog-exports-"));
test.after(() => rmSync(folder, { recursive: true }));

function exported(format, golden, name = format) {
  const file = join(folder, name);
  assert.equal(xlog("export", format, "-o", file, golden).status, 0);
  return readFileSync(file);
}

const sum = (list) => list.reduce((a, b) => a + b, 0);

for (const golden of goldens.slice(0, 2)) {
  const name = golden.split("/").pop();
  const [gpu] = report(golden).gpus;

  test(`${name}: speedscope's schema`, () => {
    const validate = new Ajv({ strict: false }).compile(JSON.parse(readFileSync(join(speedscope, "file-format-schema.json"), "utf8")));
    const json = JSON.parse(exported("speedscope", golden));
    assert.ok(validate(json), JSON.stringify(validate.errors));
    const [peak] = json.profiles;
    assert.equal(peak.name, "GPU 0, at the peak");
    assert.equal(sum(peak.weights), gpu.peak_bytes);
    assert.deepEqual(json.shared.frames.filter((each) => each.name.endsWith("...")), []);
  });

  test(`${name}: pprof`, () => {
    const profile = Profile.decode(gunzipSync(exported("pprof", golden)));
    const text = (index) => profile.stringTable.strings[Number(index)];
    const types = profile.sampleType.map((each) => `${text(each.type)}/${text(each.unit)}`);
    assert.deepEqual(types, ["peak_space/bytes", "inuse_objects/count", "inuse_space/bytes", "alloc_objects/count", "alloc_space/bytes"]);
    assert.equal(text(profile.defaultSampleType), "peak_space");
    const totals = types.map((_, i) => sum(profile.sample.map((each) => Number(each.value[i]))));
    assert.deepEqual(totals.slice(0, 4), [gpu.peak_bytes, gpu.live_blocks, gpu.live_bytes, gpu.allocations]);
    const locations = new Map(profile.location.map((each) => [String(each.id), each]));
    const functions = new Map(profile.function.map((each) => [String(each.id), each]));
    const mappings = new Set(profile.mapping.map((each) => String(each.id)));
    for (const sample of profile.sample) {
      for (const id of sample.locationId) {
        const location = locations.get(String(id));
        assert.ok(mappings.has(String(location.mappingId)));
        assert.ok(text(functions.get(String(location.line[0].functionId)).name));
      }
    }
    const folded = xlog("export", "folded", golden).out.trim().split("\n").map((line) => line.slice(0, line.lastIndexOf(" ")));
    const first = profile.sample.find((each) => Number(each.value[0]) !== 0);
    const stack = first.locationId.map((id) => text(functions.get(String(locations.get(String(id)).line[0].functionId)).name).replaceAll(";", ":")).reverse().join(";");
    assert.ok(folded.includes(stack));
  });

  test(`${name}: Prometheus`, () => {
    const script = "import sys, json\nfrom prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n" +
      "print(json.dumps([[f.name, f.type, f.unit, [[s.name, s.value] for s in f.samples]] for f in parse(sys.stdin.read())]))";
    const run = spawnSync("/usr/bin/python3", ["-c", script], { input: exported("openmetrics", golden), encoding: "utf8" });
    assert.equal(run.status, 0, run.stderr);
    const families = new Map(JSON.parse(run.stdout).map(([family, type, unit, samples]) => [family, { type, unit, samples }]));
    assert.deepEqual(families.get("xlog_peak_bytes"), { type: "gauge", unit: "bytes", samples: [["xlog_peak_bytes", gpu.peak_bytes]] });
    assert.deepEqual(families.get("xlog_refusals").samples, [["xlog_refusals_total", gpu.refusals]]);
  });
}

test("speedscope itself", async () => {
  const data = exported("speedscope", goldens[1]).toString("base64");
  const script = join(folder, "profile.js");
  writeFileSync(script, `speedscope.loadFileFromBase64("gpu.json", "${data}")`);
  const browser = await puppeteer.launch({ executablePath: process.env.XLOG_CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"] });
  try {
    const page = await browser.newPage();
    const complaints = [];
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("dialog", async (dialog) => { complaints.push(dialog.message()); await dialog.dismiss(); });
    await page.goto(`file://${join(speedscope, "index.html")}#localProfilePath=${script}`);
    await page.waitForFunction(() => document.title.startsWith("GPU memory") || document.body.textContent.includes("GPU 0, at the peak"), { timeout: 30000 });
    assert.deepEqual(complaints, []);
  } finally {
    await browser.close();
  }
});

test("Parquet", async () => {
  const ask = await database(goldens[1]);
  const statements = query("parquet.duckdb").replaceAll(/'(\w+\.parquet)'/g, `'${folder}/$1'`).split(/;\s*\n/);
  for (const statement of statements.filter((each) => each.includes("COPY"))) await ask(statement.slice(statement.indexOf("COPY")));
  const [rows] = await ask(`SELECT COUNT(*) AS n, SUM(bytes) AS bytes FROM '${folder}/events.parquet'`);
  const [same] = await ask("SELECT COUNT(*) AS n, SUM(bytes) AS bytes FROM events");
  assert.deepEqual(rows, same);
  const [frames] = await ask(`SELECT COUNT(*) AS n, MAX(depth) AS depth FROM '${folder}/frames.parquet'`);
  assert.deepEqual(frames, (await ask("SELECT COUNT(*) AS n, MAX(depth) AS depth FROM frames"))[0]);
  // The questions go to these files as they are.
  const peaks = await ask(query("peak_per_rank"));
  for (const table of ["events", "frames"]) await ask(`CREATE OR REPLACE VIEW ${table} AS SELECT * FROM '${folder}/${table}.parquet'`);
  assert.deepEqual(await ask(query("peak_per_rank")), peaks);
});
