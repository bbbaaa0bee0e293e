import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

const LAUNCHER = path.resolve(import.meta.dirname, '../../bin/cairn.cjs');

test('events are printed oldest first, as lines or as JSON from a cursor on', async () => {
  const api = await startApi({ folder: tempFolder() });
  onTestFinished(() => api.stop());
  const cairn = (...args: string[]) =>
    runCairn(['events', ...args], { settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY } });
  const first = await api.add({ content: 'The ferry leaves at noon.', user_id: 'ana' });
  const second = await api.add({ content: 'The ferry leaves at one.' });
  const { stdout } = await cairn();
  expect(stdout.trimEnd().split('\n')).toEqual([
    expect.stringMatching(new RegExp(`^\\S+Z  memory\\.stored +${first.id}  ana$`)),
    expect.stringMatching(new RegExp(`^\\S+Z  memory\\.stored +${second.id}$`)),
  ]);
  const [one] = (await cairn('--user', 'ana', '--json')).stdout.split('\n');
  const { cursor } = JSON.parse(one!) as { cursor: string };
  expect((await cairn('--cursor', cursor)).stdout).toContain(second.id);
  expect((await cairn('--cursor', cursor)).stdout).not.toContain(first.id);
  expect(await cairn('--kinds', 'memory.forgotten')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('memory.stored, memory.ready') as string,
  });
});

test('follow prints what comes over one stream, and ends with the key', async () => {
  await using api = await startApi({ folder: tempFolder() });
  const { record, secret } = api.engine.control.createKey({ tenantId: 'default', role: 'read' });
  const before = await api.add({ content: 'The ferry left before.' });
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [LAUNCHER, 'events', '--follow', '--json'], {
    env: { PATH, CAIRN_URL: api.url, CAIRN_API_KEY: secret },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const stderr: string[] = [];
  child.stderr.setEncoding('utf8').on('data', (text: string) => stderr.push(text));
  // It begins behind the newest event, and when it has begun nobody says: so until one of the adds is told.
  let isTold = false;
  const adding = (async () => {
    while (!isTold) {
      await api.add({ content: `The ferry leaves at ${Math.random()}.`, user_id: 'ana' });
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  const line = await lines.next();
  const event = JSON.parse(line.value as string) as { id: string; kind: string; user_id: string };
  isTold = true;
  await adding;
  expect(event).toMatchObject({ kind: 'memory.stored', user_id: 'ana' });
  expect(event.id).not.toBe(before.id);
  const exited = once(child, 'exit');
  api.engine.control.revokeKey(record.id);
  expect(await exited).toEqual([1, null]);
  expect(stderr.join('')).toContain('the key is no longer valid');
});
