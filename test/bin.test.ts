import { execFileSync, spawn, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { tempFolder } from './support/temp-folder.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const MISSING_NODE = 'Cairn needs Node 22.22 or newer: run `npm ci` here, or install Node 24';

/** A stand-in for the command line: says how it was started, or waits to be told to end. */
const PROGRAM = `
  const [command, ...rest] = process.argv.slice(2);
  if (command === 'wait') {
    process.on('SIGTERM', () => process.exit(7));
    setInterval(() => {}, 1000);
    console.log(process.pid);
  } else if (command === 'abort') {
    process.kill(process.pid, 'SIGABRT');
    setInterval(() => {}, 1000);
  } else {
    const major: number = Number(process.versions.node.split('.')[0]);
    console.log(JSON.stringify({ major, rest, from: import.meta.url.slice(-3), fromFile: process.env.FROM_FILE ?? null,
      channel: process.channel !== undefined && process.env.CAIRN_LAUNCHER_PID !== undefined,
      flags: process.execArgv, arenas: process.env.MALLOC_ARENA_MAX ?? null, pid: process.pid }));
    process.exit(rest.length);
  }
`;

interface Tree {
  readonly program: 'src/cli/main.ts' | 'dist/cli/main.js' | undefined;
  readonly modules: boolean;
  readonly environmentFile?: string;
}

/** A folder with the launcher and as much of Cairn as a test needs. */
function makeTree({ program, modules, environmentFile }: Tree): string {
  const root = tempFolder();
  fs.mkdirSync(path.join(root, 'bin'));
  fs.copyFileSync(path.join(ROOT, 'bin/cairn.cjs'), path.join(root, 'bin/cairn.cjs'));
  fs.writeFileSync(path.join(root, 'package.json'), '{ "type": "module" }');
  if (environmentFile !== undefined) fs.writeFileSync(path.join(root, '.env'), environmentFile);
  if (modules) {
    fs.mkdirSync(path.join(root, 'node_modules'));
    for (const name of fs
      .readdirSync(path.join(ROOT, 'node_modules'))
      .filter((name) => /^node-(linux|win)-/.test(name))) {
      fs.symlinkSync(path.join(ROOT, 'node_modules', name), path.join(root, 'node_modules', name), 'junction');
    }
  }
  if (program !== undefined) {
    fs.mkdirSync(path.dirname(path.join(root, program)), { recursive: true });
    fs.writeFileSync(path.join(root, program), program.endsWith('.js') ? PROGRAM.replace(': number', '') : PROGRAM);
  }
  return root;
}

function start(node: string, root: string, args: readonly string[], options: SpawnOptions = {}) {
  const child = spawn(node, [path.join(root, 'bin/cairn.cjs'), ...args], {
    ...options,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

async function run(node: string, root: string, args: readonly string[], options: SpawnOptions = {}) {
  const child = start(node, root, args, options);
  const [stdout, stderr, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>,
  ]);
  return { stdout, stderr, code, signal };
}

function endIfRunning(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It is gone, as it should be.
  }
}

/** The first Node on PATH that npm did not bring, if it is too old for Cairn. */
function findOldNode(): string | undefined {
  const candidates = (process.env.PATH ?? '')
    .split(path.delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .map((folder) => path.join(folder, process.platform === 'win32' ? 'node.exe' : 'node'));
  const node = candidates.find((file) => fs.existsSync(file));
  if (node === undefined) return undefined;
  const major = Number(execFileSync(node, ['-p', 'process.versions.node.split(".")[0]'], { encoding: 'utf8' }));
  return major < 22 ? node : undefined;
}

describe('on a Node that is new enough', () => {
  const node = process.execPath;

  test('a checkout runs its TypeScript, with every argument as given', async () => {
    const root = makeTree({ program: 'src/cli/main.ts', modules: false });
    const { stdout, code } = await run(node, root, ['echo', 'two words', '--flag', '']);
    expect(JSON.parse(stdout)).toMatchObject({ rest: ['two words', '--flag', ''], from: '.ts', channel: false });
    expect(code).toBe(3);
  });

  test('a published package runs its compiled JavaScript', async () => {
    const root = makeTree({ program: 'dist/cli/main.js', modules: false });
    expect(JSON.parse((await run(node, root, ['echo'])).stdout)).toMatchObject({ from: '.js' });
  });

  test('reads the .env beside package.json, over which the environment wins', async () => {
    const root = makeTree({ program: 'src/cli/main.ts', modules: false, environmentFile: 'FROM_FILE=file\n' });
    expect(JSON.parse((await run(node, root, ['echo'], { cwd: tempFolder() })).stdout)).toMatchObject({
      fromFile: 'file',
    });
    const env = { ...process.env, FROM_FILE: 'environment' };
    expect(JSON.parse((await run(node, root, ['echo'], { env })).stdout)).toMatchObject({ fromFile: 'environment' });
  });

  test.runIf(process.execve)(
    'tells a service how to use memory, in the same process, unless its caller does',
    async () => {
      const root = makeTree({ program: 'src/cli/main.ts', modules: false });
      const startedAs = async (command: string, options?: SpawnOptions) => {
        const child = start(node, root, [command, 'two words'], options);
        const said = JSON.parse(await text(child.stdout)) as { flags: string[]; arenas: string | null };
        expect(said).toMatchObject({ rest: ['two words'], pid: child.pid });
        return { flags: said.flags, arenas: said.arenas };
      };
      const flags = ['--max-semi-space-size=8', '--no-allocation-site-pretenuring', '--heap-growing-percent=25'];
      for (const command of ['serve', 'api', 'worker'])
        expect(await startedAs(command)).toEqual({ flags, arenas: '2' });
      expect(await startedAs('echo')).toEqual({ flags: [], arenas: null });
      const own = { ...process.env, MALLOC_ARENA_MAX: '4' };
      expect(await startedAs('serve', { env: own })).toEqual({ flags, arenas: '4' });
      const env = { ...process.env, NODE_OPTIONS: '--max-semi-space-size=32' };
      expect(await startedAs('serve', { env })).toEqual({ flags: flags.slice(1), arenas: '2' });
      const given = ['--max_semi_space_size=32', '--allocation-site-pretenuring', '--heap-growing-percent=70'];
      const child = spawn(node, [...given, path.join(root, 'bin/cairn.cjs'), 'serve']);
      onTestFinished(() => void child.kill('SIGKILL'));
      expect(JSON.parse(await text(child.stdout))).toMatchObject({ flags: given, arenas: '2', pid: child.pid });
    },
  );

  test('says what is wrong with a folder that holds neither', async () => {
    const { stderr, code } = await run(node, makeTree({ program: undefined, modules: false }), ['echo']);
    expect(stderr).toContain('npm run build');
    expect(code).toBe(1);
  });
});

const oldNode = findOldNode();
if (oldNode === undefined) console.warn('no Node older than 22 on PATH: the launcher is not tested on one');

describe.skipIf(oldNode === undefined)('on a Node that is too old', () => {
  const node = oldNode!;
  let root: string;
  beforeAll(() => {
    root = makeTree({ program: 'src/cli/main.ts', modules: true });
  });

  test('the Node that npm installed takes over, with every argument, and its exit code is passed on', async () => {
    const { stdout, code } = await run(node, root, ['echo', 'two words', '--flag', '']);
    expect(JSON.parse(stdout)).toMatchObject({ major: 24, rest: ['two words', '--flag', ''], channel: false });
    expect(code).toBe(3);
  });

  test('a signal reaches it, and how it ends is how the launcher ends', async () => {
    const child = start(node, root, ['wait']);
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([7, null]);
    expect((await run(node, root, ['abort'])).signal).toBe('SIGABRT');
  });

  test('a launcher that is killed outright leaves nothing behind', async () => {
    const child = start(node, root, ['wait']);
    const [pid] = (await once(child.stdout, 'data')) as [Buffer];
    onTestFinished(() => endIfRunning(Number(pid.toString())));
    child.kill('SIGKILL');
    // The pipes are the inner process's too: they close when it is gone.
    expect(await once(child, 'close')).toEqual([null, 'SIGKILL']);
  });

  test('without an npm install it says what to do', async () => {
    const { stdout, stderr, code } = await run(node, makeTree({ program: 'src/cli/main.ts', modules: false }), [
      'echo',
    ]);
    expect({ stdout, stderr: stderr.trim(), code }).toEqual({ stdout: '', stderr: MISSING_NODE, code: 1 });
  });
});
