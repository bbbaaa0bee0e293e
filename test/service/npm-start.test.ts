import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, onTestFinished, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const isPosix = process.platform !== 'win32';

interface LogLine {
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** A folder that runs this checkout's code, with a `.env` of its own. */
function makeInstallation(envMode: number): string {
  const root = tempFolder();
  fs.mkdirSync(path.join(root, 'bin'));
  for (const file of ['package.json', 'bin/cairn.cjs']) fs.copyFileSync(path.join(ROOT, file), path.join(root, file));
  for (const folder of ['src', 'node_modules']) fs.symlinkSync(path.join(ROOT, folder), path.join(root, folder));
  fs.writeFileSync(path.join(root, '.env'), 'OM_API_KEY=canary-of-the-env-file\nOM_EMBEDDINGS=none\n');
  fs.chmodSync(path.join(root, '.env'), envMode);
  return root;
}

/** Starts a command in such a folder, in a process group of its own. */
function start(root: string, command: readonly [string, ...string[]]) {
  const [name, ...args] = command;
  const child = spawn(name, args, {
    cwd: root,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      PATH: `${path.dirname(process.execPath)}${path.delimiter}${process.env['PATH']}`,
      OM_PORT: '0',
      OM_DB_PATH: path.join(root, 'data/cairn.sqlite'),
    },
  });
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  onTestFinished(() => {
    // The whole group, in which a server may be left.
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // All of it is gone, as it should be.
    }
  });
  const lines: LogLine[] = [];
  const ready = Promise.withResolvers<void>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (!line.startsWith('{')) return;
    lines.push(JSON.parse(line) as LogLine);
    if (lines.at(-1)!.msg === 'ready') ready.resolve();
  });
  void exited.then(() => ready.reject(new Error('it ended before it was ready')));
  return { child, exited, lines, ready: ready.promise, closed: once(child, 'close') };
}

describe.runIf(isPosix)('a SIGTERM ends the service cleanly', () => {
  test.each<[string, string, readonly [string, ...string[]]]>([
    ['npm start', 'to npm', ['npm', 'start']],
    ['npm run start:api', 'to npm', ['npm', 'run', 'start:api']],
    ['bin/cairn.cjs serve', 'to it', [process.execPath, 'bin/cairn.cjs', 'serve']],
  ])('%s, sent %s', async (_name, _to, command) => {
    const service = start(makeInstallation(0o600), command);
    await service.ready;
    service.child.kill('SIGTERM');
    const [code, signal] = await service.exited;
    expect({ code, signal }).toEqual({ code: 0, signal: null });
    await service.closed;
    expect(service.lines).toContainEqual(expect.objectContaining({ msg: 'stopping', reason: 'SIGTERM' }));
    expect(service.lines.map(({ msg }) => msg)).not.toContain('env_file_readable');
  });
});

test.runIf(isPosix).each([
  ['0644', 0o644],
  ['0640', 0o640],
  ['0604', 0o604],
])('a .env of mode %s is warned of once, and nothing in it is shown', async (shown, mode) => {
  const root = makeInstallation(mode);
  const service = start(root, [process.execPath, 'bin/cairn.cjs', 'serve']);
  await service.ready;
  service.child.kill('SIGTERM');
  await service.closed;
  const warnings = service.lines.filter(({ msg }) => msg === 'env_file_readable');
  expect(warnings).toEqual([
    expect.objectContaining({ level: 40, path: path.join(fs.realpathSync(root), '.env'), mode: shown }),
  ]);
  expect(JSON.stringify(service.lines)).not.toContain('canary');
});
