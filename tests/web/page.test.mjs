// The page in a real browser without a network: it draws, the brush changes the flame graph, nothing complains.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import puppeteer from "puppeteer-core";
import { goldens, root, xlog } from "./support.mjs";

const executablePath = process.env.XLOG_CHROMIUM;
const launch = () => puppeteer.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });

async function open(browser, file, complaints) {
  const page = await browser.newPage();
  await page.setViewport({ width: 1200, height: 1000 });
  await page.setOfflineMode(true);
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => { if (!/^(file|data):/.test(request.url())) complaints.push(request.url()); });
  await page.goto(`file://${file}`);
  return page;
}

const text = (page, selector) => page.$eval(selector, (element) => element.textContent);
const frames = (page) => page.$$eval("#flame g.frame", (list) => list.map((each) => each.getAttribute("name")).join("|"));

test("the page", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "xlog-page-"));
  const browser = await launch();
  t.after(async () => { await browser.close(); rmSync(folder, { recursive: true }); });
  for (const golden of goldens) {
    await t.test(golden.split("/").pop(), async () => {
      const file = join(folder, "page.html");
      assert.equal(xlog("report", "--html", file, golden).status, 0);
      assert.ok(statSync(file).size <= 5e6);
      const complaints = [];
      const page = await open(browser, file, complaints);
      const drawn = await page.$eval("#timeline canvas", (canvas) => {
        const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return pixels.some((value) => value !== 0);
      });
      assert.ok(drawn);
      assert.match(await text(page, "#flame-title"), /live at the peak/);
      assert.ok((await page.$$("#flame g.frame")).length > 1);
      assert.ok((await page.$$("#tables tbody tr")).length > 0);
      const titles = await page.$$eval("#sections summary", (all) => all.map((each) => each.textContent));
      const said = JSON.parse(xlog("report", "--json", golden).out).sections;
      assert.deepEqual(titles, said.map((each) => each.title));
      const opened = await page.$$eval("#sections details[open] summary", (all) => all.map((each) => each.textContent));
      assert.deepEqual(opened, said.filter((each) => each.trouble).map((each) => each.title));
      assert.equal((await page.$$("#sections tr")).length, said.reduce((sum, each) => sum + each.rows.length, 0));
      assert.deepEqual(complaints, []);
      await page.close();
    });
  }
  const file = join(folder, "tensors.html");
  xlog("report", "--html", file, goldens[1]);

  await t.test("the brush changes the flame graph", async () => {
    const complaints = [];
    const page = await open(browser, file, complaints);
    const before = await frames(page);
    const box = await (await page.$("#timeline .u-over")).boundingBox();
    await page.mouse.move(box.x + box.width * 0.05, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.3, box.y + 60, { steps: 5 });
    await page.mouse.up();
    assert.match(await text(page, "#flame-title"), /live at the highest moment told between/);
    const brushed = await frames(page);
    assert.notEqual(brushed, before);
    await page.mouse.click(box.x + box.width * 0.9, box.y + 100);
    assert.match(await text(page, "#flame-title"), /after the first call$/);
    await page.mouse.click(box.x + box.width * 0.5, box.y + 100, { count: 2 });
    assert.match(await text(page, "#flame-title"), /live at the peak/);
    assert.deepEqual(complaints, []);
    await page.close();
  });

  await t.test("tables are sorted and searched, colours change", async () => {
    const page = await open(browser, file, []);
    const cells = () => page.$$eval("#tables tbody", (bodies) => [...bodies[0].rows].map((row) => row.cells[3].textContent));
    await page.evaluate(() => document.querySelectorAll("#tables th")[3].click());
    const down = (await cells()).map((each) => Number(each.replaceAll(",", "")));
    assert.deepEqual(down, [...down].sort((a, b) => b - a));
    await page.evaluate(() => document.querySelectorAll("#tables th")[3].click());
    const up = (await cells()).map((each) => Number(each.replaceAll(",", "")));
    assert.deepEqual(up, [...up].sort((a, b) => a - b));
    const all = (await cells()).length;
    await page.type("#search", "cublas");
    const found = (await cells()).length;
    assert.ok(found > 0 && found < all);
    const ground = () => page.$eval("body", (body) => getComputedStyle(body).backgroundColor);
    const light = await ground();
    await page.click("#theme");
    assert.notEqual(await ground(), light);
    await page.close();
  });

  await t.test("a name from a log is text, not a page", async () => {
    const log = join(folder, "x.7.csv");
    const header = "thread,time,action,ptr,bytes,stream,device,tag,query_id,seq,generation,kind,api,result,message,live_bytes,elapsed_ns,stack_id,thread_name";
    writeFileSync(log, `${header}\n1,1700000000000000000,allocate,0x7f0000000000,512,,0,</script><script>document.title='evil'</script>,,1,1,plain,cuMemAlloc_v2,ok,,512,10,,<img src=x onerror=alert(1)>\n`);
    const evil = join(folder, "evil.html");
    assert.equal(xlog("report", "--html", evil, log).status, 0);
    const complaints = [];
    const page = await open(browser, evil, complaints);
    assert.match(await page.title(), /^xlog: /);
    assert.equal((await page.$$("#tables img")).length, 0);
    assert.deepEqual(complaints, []);
    await page.close();
  });
});

// Kept for a look at it: build/page.png.
test("a screenshot", async () => {
  const browser = await launch();
  const file = join(root, "build/page.html");
  xlog("report", "--html", file, goldens[1]);
  const page = await open(browser, file, []);
  await page.screenshot({ path: join(root, "build/page.png") });
  await browser.close();
});
