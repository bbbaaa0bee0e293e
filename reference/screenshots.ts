/**
 * Takes the pictures of the console that the README and the guide show, in both themes: `npm run screenshots`. It
 * starts the service on a folder of its own, fills it with the demo, and needs Chromium.
 */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { chromium, type Page } from 'playwright-core';
import { DEMO_DOCUMENT, DEMO_MEMORIES, demoBody } from './demo-data.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const IMAGES = path.join(ROOT, 'docs/images');
const QUESTION = 'when do we deploy to staging?';
/** Fields of replies, of which each has some. */
interface Reply {
  readonly id: string;
  readonly document_id: string;
  readonly recall_id: string;
  readonly erasure: string;
  readonly webhook: { readonly id: string };
}

/** Heights of the pictures whose point stands further below (px). */
const TALL: Readonly<Record<string, number>> = {
  ask: 1100,
  compare: 1450,
  decay: 1200,
  graph: 1150,
  links: 1050,
  work: 1150,
};
const USUAL = 900;

/** Browsers by the names under which Debian and others install them. */
const BROWSERS = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/google-chrome'];

interface Demo {
  readonly url: string;
  readonly ids: readonly string[];
  readonly documentId: string;
  readonly recallId: string;
  readonly standingId: string;
  readonly webhookId: string;
  readonly receiptId: string;
}

await main();

async function main(): Promise<void> {
  const services = [startService('demo'), startService('berlin')] as const;
  const receiver = createServer((_, response) => void response.writeHead(204).end());
  await once(receiver.listen(0, '127.0.0.1'), 'listening');
  const hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hooks/cairn`;
  try {
    const [url, berlin] = await Promise.all(services.map(({ url }) => url));
    const demo = await fill(url!, { hook, berlin: berlin! });
    await takePictures(demo);
  } finally {
    for (const service of services) service.end();
    receiver.close();
  }
}

/** Starts a service in a folder of its own. */
function startService(name: string) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), `cairn-${name}-`));
  const child = spawn(process.execPath, [path.join(ROOT, 'bin/cairn.cjs'), 'serve'], {
    env: {
      PATH: process.env['PATH'],
      OM_DB_PATH: path.join(folder, 'cairn.sqlite'),
      OM_PORT: '0',
      OM_CHUNK_TOKENS: '100',
      OM_CHUNK_OVERLAP_TOKENS: '0',
      OM_WEBHOOK_ALLOW: '127.0.0.1',
      OM_FEDERATION_ALLOW: '127.0.0.1',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<never>((_, reject) => child.on('exit', () => reject(new Error('the service ended'))));
  ended.catch(() => {});
  return {
    url: Promise.race([addressOf(child.stdout), ended]),
    end() {
      child.kill('SIGTERM');
      fs.rmSync(folder, { recursive: true, force: true });
    },
  };
}

function addressOf(output: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve) => {
    createInterface({ input: output }).on('line', (line) => {
      const entry = JSON.parse(line) as { readonly msg: string; readonly url: string };
      if (entry.msg === 'ready') resolve(entry.url);
    });
  });
}

async function send(method: string, url: string, body?: unknown): Promise<Reply> {
  const response = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await response.json()) as Reply;
}

/** Tells a second server something, and has the first one ask it and gather memories. */
async function fillFurther(url: string, berlin: string): Promise<void> {
  for (const content of [
    'In Berlin the staging cluster is frozen from 20 December on.',
    'Berlin deploys to its own staging every Friday at noon.',
  ])
    await send('POST', `${berlin}/memory/add?wait=20000`, { content, user_id: 'ana', tags: ['berlin'] });
  await send('POST', `${url}/federation/servers`, { name: 'berlin', url: berlin });
  for (const content of [
    'Ben swims every Monday morning at the city pool before work.',
    'Ben swims every Monday morning at the city pool before work, and on Fridays in winter.',
  ])
    await send('POST', `${url}/memory/add?wait=20000`, { content, user_id: 'ben' });
  await send('POST', `${url}/consolidations?wait=20000`, { user_id: 'ben' });
}

async function fill(url: string, { hook, berlin }: { hook: string; berlin: string }): Promise<Demo> {
  const post = (route: string, body?: unknown) => send('POST', url + route, body);
  // It is asked before there is anything, so that the memories below answer it.
  const standing = await post('/standing', { query: QUESTION, user_id: 'ana', webhook: { url: hook } });
  await post('/standing', { query: 'Who is away next week?' });
  const ids: string[] = [];
  for (const memory of DEMO_MEMORIES) ids.push((await post('/memory/add?wait=20000', demoBody(memory))).id);
  const place = (words: string) => ids[DEMO_MEMORIES.findIndex(({ content }) => content.includes(words))];
  await post('/memory/supersede', { old_id: place('every Thursday'), new_id: place('every Tuesday') });
  await post('/memory/link', { src: place('Lesson from'), dst: place('locked the orders'), type: 'derived_from' });
  await post('/memory/link', { src: place('To roll back'), dst: place('every Tuesday'), type: 'supports' });
  await send('PATCH', `${url}/memory/${place('error budget of')}`, {
    content: 'The error budget of the payments service for this month is used up to 71 percent.',
    tags: ['payments', 'monitoring', 'slo'],
  });
  const { document_id: documentId } = await post('/memory/ingest?wait=60000', {
    text: DEMO_DOCUMENT,
    content_type: 'text/markdown',
    file_name: 'handbook.md',
    user_id: 'ana',
  });
  let recallId = '';
  for (const query of ['rollback', 'what happened to the checkout?', QUESTION]) {
    recallId = (await post('/memory/query', { query, user_id: 'ana' })).recall_id;
  }
  await post('/evals', {
    name: 'team-questions',
    items: [
      { query: QUESTION, user_id: 'ana', expected: ['tuesday'] },
      { query: 'how do we roll back?', user_id: 'ana', expected: ['roll back'] },
      { query: 'what is the code of the safe?', user_id: 'ana', expected: [] },
    ],
  });
  for (let run = 0; run < 4; run++) await post('/evals/team-questions/run');
  let erasure = '';
  for (const content of ['The old door code is 2207.', 'Call me at my former number.']) {
    const { id } = await post('/memory/add?wait=20000', { content, user_id: 'ben' });
    erasure = (await send('DELETE', `${url}/memory/${id}`)).erasure;
  }
  await fillFurther(url, berlin);
  return {
    url,
    ids,
    documentId,
    recallId,
    standingId: standing.id,
    webhookId: standing.webhook.id,
    receiptId: erasure.split('.')[0]!,
  };
}

async function takePictures({ url, ids, documentId, recallId, ...demo }: Demo): Promise<void> {
  const tuesday = ids[DEMO_MEMORIES.findIndex(({ content }) => content.includes('every Tuesday'))]!;
  const budget = ids[DEMO_MEMORIES.findIndex(({ content }) => content.includes('error budget of'))]!;
  const jwt = ids[DEMO_MEMORIES.findIndex(({ content }) => content.includes('JWT'))]!;
  const asked = `query=${encodeURIComponent(QUESTION)}&user_id=ana`;
  const views: Readonly<Record<string, string>> = {
    'sign-in': 'sign-in',
    ask: `ask?${asked}&why=${jwt}`,
    several: `ask?${asked}&servers=berlin`,
    stages: `ask?${asked}&tab=trace`,
    compare: `ask?${asked}&tab=compare&min_score=0.1&b%3Aweights.recency=0.6`,
    memory: `memory/${tuesday}`,
    history: `memory/${budget}?tab=history`,
    links: `memory/${tuesday}?tab=links`,
    name: 'name/postgresql?user_id=ana',
    browse: 'browse',
    gathered: 'browse?view=gathered',
    documents: 'documents',
    document: `document/${documentId}`,
    'document-receipt': `document/${documentId}?tab=receipt`,
    graph: 'graph?user_id=ana',
    recalls: 'recalls',
    recall: `recall/${recallId}`,
    questions: 'standing',
    standing: `standing/${demo.standingId}`,
    webhook: `standing/${demo.webhookId}?tab=webhooks`,
    duplicates: 'browse?view=duplicates&least=0.2',
    decay: 'decay?below=0.2&lambda=0.02',
    evaluations: 'evals',
    evaluation: 'evals/team-questions',
    work: 'work',
    keys: 'admin',
    settings: 'admin?tab=service&find=decay',
    admin: 'admin?tab=limits',
    audit: 'admin?tab=audit',
    receipt: `admin?tab=receipts&receipt=${demo.receiptId}`,
  };
  fs.mkdirSync(IMAGES, { recursive: true });
  const browser = await chromium.launch({
    executablePath: BROWSERS.find((file) => fs.existsSync(file))!,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-background-networking'],
  });
  const only = process.argv.slice(2);
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({ colorScheme, deviceScaleFactor: 1 });
    for (const [name, view] of Object.entries(views)) {
      if (only.length > 0 && !only.includes(name)) continue;
      await page.setViewportSize({ width: 1280, height: TALL[name] ?? USUAL });
      await picture(page, `${url}/console#/${view}`, `console-${name}-${colorScheme}.png`);
    }
    await page.close();
  }
  const phone = await browser.newPage({ viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 });
  if (only.length === 0 || only.includes('phone'))
    await picture(phone, `${url}/console#/ask?${asked}`, 'console-phone.png');
  await browser.close();
}

async function picture(page: Page, address: string, file: string): Promise<void> {
  await page.goto('about:blank');
  await page.goto(address);
  await page.waitForLoadState('networkidle');
  // A map is drawn until its layout has settled.
  if ((await page.locator('canvas').count()) > 0) await page.locator('canvas[data-settled]').waitFor();
  await page.waitForTimeout(400);
  await page.screenshot({ path: path.join(IMAGES, file) });
}
