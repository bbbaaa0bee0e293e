/**
 * Cost of MCP: `npm run measure -- mcp-cost [MEMORIES]`. It measures the time of a `recall` over `POST /mcp`, by a
 * client of each era, against the same query over `POST /memory/query`, in turn and over the same connection; and the
 * resident memory that the first message takes. Prints one JSON line per figure.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { readConfig } from '../src/engine/config.ts';
import { startService } from '../src/main.ts';
import { createQuestions, createTexts, measureAdds, untilIdle } from './load.ts';
import { percentile, report } from './report.ts';

const MEMORIES = Number(process.argv[2] ?? 10_000);
const QUESTIONS = 500;
const WARM_UP = 50;
const CONNECTIONS = 8;
const REVISION = '2026-07-28';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
const config = readConfig({ OM_DB_PATH: path.join(folder, 'cairn.sqlite'), OM_PORT: '0', OM_LOG_LEVEL: 'silent' });
const service = await startService(config);
try {
  await measureAdds(service.url, createTexts(MEMORIES), CONNECTIONS);
  await untilIdle(service.url);
  const before = process.memoryUsage().rss;
  await legacy('the first message');
  report('mb_of_the_first_message', (process.memoryUsage().rss - before) / 2 ** 20);
  const times: Record<string, number[]> = { http: [], legacy: [], modern: [] };
  const ways = Object.entries({ http, legacy, modern });
  const nextQuestion = createQuestions();
  for (let at = 0; at < QUESTIONS + WARM_UP; at++) {
    const question = nextQuestion();
    for (const [name, ask] of ways) {
      const startedAt = performance.now();
      await ask(question);
      if (at >= WARM_UP) times[name]!.push(performance.now() - startedAt);
    }
  }
  for (const [name, taken] of Object.entries(times)) {
    const figures = { p50: percentile(taken, 0.5), p95: percentile(taken, 0.95), memories: MEMORIES };
    report(`ms_of_a_recall_${name}`, mean(taken), figures);
  }
  for (const era of ['legacy', 'modern']) report(`ms_over_http_${era}`, mean(times[era]!) - mean(times['http']!));
} finally {
  await service.stop();
  fs.rmSync(folder, { recursive: true, force: true });
}

async function http(query: string): Promise<void> {
  const body = { query, k: 8, token_budget: 6_000, format: 'prompt', reinforce: false };
  await post('/memory/query', body, {});
}

async function legacy(query: string): Promise<void> {
  await post('/mcp', call(query), {});
}

async function modern(query: string): Promise<void> {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': REVISION,
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const headers = { 'mcp-protocol-version': REVISION, 'mcp-method': 'tools/call', 'mcp-name': 'recall' };
  await post('/mcp', call(query, meta), headers);
}

function call(query: string, meta?: object) {
  const params = { name: 'recall', arguments: { query }, ...(meta === undefined ? {} : { _meta: meta }) };
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
}

async function post(target: string, body: object, headers: Readonly<Record<string, string>>): Promise<void> {
  const response = await fetch(service.url + target, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status !== 200 || text.includes('"isError":true')) throw new Error(text);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
