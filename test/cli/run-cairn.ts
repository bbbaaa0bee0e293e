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
  /** Working folder of the command; that of the tests if left out. */
  readonly folder?: string;
}

/**
 * Starts the command line without a terminal, with only the given settings in its environment, and sends `input` to its
 * standard input. It is killed when the test has ended.
 */
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

/** Runs the command line as `startCairn` starts it, and waits until it has ended. */
export async function runCairn(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const child = startCairn(args, options);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}
