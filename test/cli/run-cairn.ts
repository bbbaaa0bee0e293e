import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

const LAUNCHER = path.resolve(import.meta.dirname, '../../bin/cairn.cjs');

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly settings?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** In which it runs; the tests' own if left out. */
  readonly folder?: string;
}

/** Starts `cairn` as a person would, without a terminal and with no settings but those given. */
export function startCairn(
  args: readonly string[],
  { settings = {}, input = '', folder }: RunOptions = {},
): ChildProcess {
  const { PATH = '', HOME = '', TMPDIR = '' } = process.env;
  const child = spawn(process.execPath, [LAUNCHER, ...args], {
    env: { PATH, HOME, ...(TMPDIR === '' ? {} : { TMPDIR }), ...settings },
    ...(folder === undefined ? {} : { cwd: folder }),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  child.stdin.on('error', () => {}); // It may end before it has read all.
  child.stdin.end(input);
  return child;
}

export async function runCairn(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const child = startCairn(args, options);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}
