import { execFile, spawn, type ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import { once } from 'node:events';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished } from 'vitest';
import { freePort } from './free-port.ts';
import { tempFolder } from './temp-folder.ts';

/** Runs examples with the commands of their README. */

const ROOT = path.resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

interface Block {
  readonly language: string;
  readonly text: string;
}

/**
 * Copies an example to a temporary folder, and runs there the commands of every `sh` block of its README, in order. It
 * skips `npm install`, which whoever runs the tests has done, and runs `npx cairn serve` in the background on a free
 * port. A block `text` contains the expected output of the block before it.
 * @param variables further environment variables of the commands
 * @returns for each `text` block the printed and the expected output
 */
export async function runReadme(
  example: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<{ readonly printed: string; readonly promised: string }[]> {
  const folder = copyOf(example);
  const port = await freePort();
  const environment = { ...environmentOf(folder, port), ...variables };
  const results: { readonly printed: string; readonly promised: string }[] = [];
  let [printed, hasServer] = ['', false];
  for (const { language, text } of blocksOf(path.join(folder, 'README.md'))) {
    if (language === 'text') results.push({ printed, promised: text });
    else if (text === 'npx cairn serve\n') {
      await startServer(folder, environment, port);
      hasServer = true;
    } else if (text !== 'npm install\n') {
      printed = await runCommands(text, folder, environment);
      if (hasServer) await finishJobs(port);
    }
  }
  return results;
}

/** Returns the blocks of a README that contain commands or their output. */
function blocksOf(readme: string): Block[] {
  const blocks = fs.readFileSync(readme, 'utf8').matchAll(/^```(sh|text)\n(.*?)^```$/gms);
  return [...blocks].map(([, language, text]) => ({ language: language!, text: text! }));
}

/** Copies an example with its packages into a folder of its own, in which it may write. */
function copyOf(example: string): string {
  const [source, folder] = [path.join(ROOT, 'examples', example), tempFolder()];
  const packages = path.join(source, 'node_modules');
  fs.cpSync(source, folder, { recursive: true, filter: (file) => file !== packages });
  if (fs.existsSync(packages)) fs.symlinkSync(packages, path.join(folder, 'node_modules'));
  return folder;
}

/**
 * Returns the environment of an example's programs. They find the package in the sources, which are not built here;
 * `npx cairn` and `node` are those of the project.
 */
function environmentOf(folder: string, port: number): NodeJS.ProcessEnv {
  const programs = path.join(folder, '.programs');
  fs.mkdirSync(programs);
  const launcher = path.join(ROOT, 'bin/cairn.cjs');
  fs.writeFileSync(path.join(programs, 'npx'), `#!/bin/sh\nshift\nexec '${process.execPath}' '${launcher}' "$@"\n`, {
    mode: 0o755,
  });
  const { HOME = '', PATH = '' } = process.env;
  return {
    HOME,
    PATH: [programs, path.dirname(process.execPath), PATH].join(path.delimiter),
    NODE_OPTIONS: `--import=${path.join(ROOT, 'test/support/self-reference.mjs')}`,
    OM_PORT: String(port),
    CAIRN_URL: `http://127.0.0.1:${port}`,
  };
}

async function startServer(folder: string, environment: NodeJS.ProcessEnv, port: number): Promise<void> {
  const server = spawn('npx', ['cairn', 'serve'], { cwd: folder, env: environment, stdio: 'ignore' });
  onTestFinished(() => endServer(server));
  while (!(await isServing(port))) {
    if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function endServer(server: ChildProcess): Promise<void> {
  const ended = once(server, 'close');
  server.kill('SIGTERM');
  await ended;
}

async function isServing(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/health`)).ok;
  } catch {
    return false;
  }
}

/**
 * Waits until no job is left. A person who follows the README takes longer than the jobs, whose vectors decide the
 * order of hits.
 */
async function finishJobs(port: number): Promise<void> {
  await expect
    .poll(
      async () => {
        const reply = await fetch(`http://127.0.0.1:${port}/jobs?l=1`);
        return ((await reply.json()) as { backlog: unknown[] }).backlog;
      },
      { interval: 100 },
    )
    .toEqual([]);
}

async function runCommands(commands: string, folder: string, environment: NodeJS.ProcessEnv): Promise<string> {
  const { stdout } = await run('sh', ['-e', '-c', commands], { cwd: folder, env: environment });
  return stdout;
}
