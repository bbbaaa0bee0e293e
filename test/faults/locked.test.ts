import path from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import {
  checkAdds,
  chooseSeed,
  createAddClient,
  describeReport,
  expectFinished,
  expectSound,
} from '../support/add-checker.ts';
import { startWithProvider } from '../support/provider-service.ts';
import { databaseFile, startServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Another program that holds the write lock from the moment this resolves. */
async function lockDatabase(file: string, ms: number): Promise<void> {
  const program = `
    const db = new (require('better-sqlite3'))(process.argv[1], { timeout: 20000 });
    db.exec('BEGIN IMMEDIATE');
    console.log('locked');
    setTimeout(() => process.exit(0), ${ms});`;
  const child = spawn(process.execPath, ['-e', program, file], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
}

test.each([
  { ms: 3_000, expectation: 'every add waits and succeeds', refused: false },
  { ms: 7_000, expectation: 'some are refused for the moment', refused: true },
])('while another program holds the write lock for $ms ms, $expectation and none is lost', async ({ ms, refused }) => {
  const folder = tempFolder();
  const history = path.join(folder, 'history.jsonl');
  const service = await startServiceProcess({ folder });
  const seed = chooseSeed();
  const client = createAddClient({ history, seed, concurrency: 16, service: async () => service });
  const adding = client.add(600);
  await client.untilAcknowledged(200);
  await lockDatabase(databaseFile(folder), ms);
  // Reads need no write lock.
  expect((await service.request('POST', '/memory/query', { body: { query: 'the old harbour' } })).status).toBe(200);
  await adding;
  const counts = await service.idle();
  const report = await checkAdds(service, history);
  await service.end('SIGTERM');
  console.log(`seed ${seed}, ${ms} ms: ${describeReport(report)}; statuses ${JSON.stringify([...client.statuses])}`);
  expectSound(report);
  expect(report).toMatchObject({ acknowledged: 600, recovered: 0 });
  expect(counts).toMatchObject({ done: 600, dead: 0 });
  expect(client.statuses.has(503)).toBe(refused);
  expect(expectFinished(folder)).toBe(600);
});

test('a refusal says when to come back', async () => {
  const folder = tempFolder();
  const service = await startServiceProcess({ folder });
  await lockDatabase(databaseFile(folder), 7_000);
  const reply = await service.request('POST', '/memory/add', { body: { content: 'while it is locked' } });
  expect(reply.status).toBe(503);
  expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
  // By now the lock has two seconds left, which the next one waits for.
  expect((await service.request('POST', '/memory/add', { body: { content: 'while it is locked' } })).status).toBe(202);
});

test('a worker that could not even write down its failure holds its jobs no longer than their lease', async () => {
  const { folder, service, provider, add } = await startWithProvider({ OM_EMBED_TIMEOUT_MS: '5000' });
  provider.setMode('slow', { delayMs: 1_000 });
  const called = provider.nextCall();
  await add(Array.from({ length: 20 }, (_, number) => `The bridge at mile ${number} is up`));
  await called;
  // The commit of the step waits 5 s for the lock, and the note that it failed 5 s more; before or between, a sweep may
  // wait as long.
  await lockDatabase(databaseFile(folder), 18_000);
  provider.setMode('ok');
  expect(await service.idle()).toMatchObject({ done: 20, dead: 0 });
});
