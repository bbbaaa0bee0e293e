import { styleText } from 'node:util';
import { EngineError } from '../engine/for-options.ts';
import { CliError } from './cli-error.ts';
import { oneLine } from './terminal.ts';

/**
 * Prints an error to stderr as one line, without control characters, that says what failed and what to do next. An
 * unexpected error counts as a bug, and its stack is printed as well.
 * @returns the exit code: that of a CliError, and else 1
 */
export function reportError(error: unknown): number {
  const line = describe(error);
  const mark = styleText('red', 'cairn:', { stream: process.stderr });
  process.stderr.write(`${mark} ${line === undefined ? 'this is a bug, please report it' : oneLine(line)}\n`);
  if (line === undefined) process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  return error instanceof CliError ? error.exitCode : 1;
}

/** Returns the line for an expected error; undefined for an unexpected one, which is a bug. */
function describe(error: unknown): string | undefined {
  if (error instanceof CliError) return error.message;
  if (error instanceof EngineError) {
    if (error.code === 'internal' && error.cause === undefined) return undefined;
    const text = error.message.includes('\n') ? `wrong settings: ${error.details?.join('; ')}` : error.message;
    return isSystemError(error.cause) && error.cause.code === 'EADDRINUSE'
      ? `${text}: another program, perhaps another Cairn, uses it; stop that, or set another port`
      : text;
  }
  if (isSystemError(error)) return SYSTEM[error.code]?.(error) ?? error.message;
  return undefined;
}

interface SystemError extends Error {
  readonly code: string;
  readonly syscall: string;
  readonly path?: string;
}

const SYSTEM: Readonly<Record<string, (error: SystemError) => string>> = {
  ENOENT: ({ path }) => `no such file or folder: ${path}`,
  EACCES: ({ path }) => `no permission for ${path}`,
  EPERM: ({ path }) => `no permission for ${path}`,
  ENOSPC: ({ path }) => `the disk is full${path === undefined ? '' : `: ${path}`}`,
  EROFS: ({ path }) => `${path} cannot be written: its file system is read-only`,
};

function isSystemError(error: unknown): error is SystemError {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}
