import { execSync } from 'node:child_process';
import fs from 'node:fs';
import { KEY_FORM } from './encryption-settings.ts';
import type { Settings } from './settings.ts';

/** Longest time that the command may take to print the key (ms). */
const COMMAND_MS = 30_000;
/** Greatest size of a key file or of a command's output in bytes: the key has 64, and blanks around it are allowed. */
const MAX_KEY_BYTES = 1024;
const SOURCES = ['OM_ENCRYPTION_KEY_FILE', 'OM_ENCRYPTION_KEY', 'OM_ENCRYPTION_KEY_COMMAND'] as const;

/**
 * Reads the master key from the one setting that names it. A command is run in a shell, and the thread waits for it, up
 * to 30 s.
 * @returns the 32 bytes of the key; null if no setting names one; or a text that says what is wrong, without the key
 */
export function readMasterKey(settings: Pick<Settings, (typeof SOURCES)[number]>): Uint8Array | null | string {
  const named = SOURCES.filter((name) => settings[name] !== undefined);
  if (named.length > 1) return `${named.join(', ')}: expected only one of them, as there is one master key`;
  const { OM_ENCRYPTION_KEY_FILE: file, OM_ENCRYPTION_KEY: key, OM_ENCRYPTION_KEY_COMMAND: command } = settings;
  if (file !== undefined) return readKeyFile(file, 'OM_ENCRYPTION_KEY_FILE');
  if (command !== undefined) return runKeyCommand(command);
  return key === undefined ? null : parseKey(key, 'OM_ENCRYPTION_KEY');
}

/**
 * Reads a key from a file. Except on Windows, a file is refused that users other than its owner and its group may read,
 * write or execute.
 * @param from name of the setting or option that named the file, for messages
 * @returns the 32 bytes of the key, or a text that says what is wrong
 */
export function readKeyFile(file: string, from: string): Uint8Array | string {
  try {
    const { mode, size } = fs.statSync(file);
    if (process.platform !== 'win32' && (mode & 0o007) !== 0) {
      return `${from}: other users of the machine may read the file: run \`chmod o= FILE\` on it`;
    }
    if (size > MAX_KEY_BYTES) return `${from}: expected a file with 64 hex digits`;
    return parseKey(fs.readFileSync(file, 'utf8'), from);
  } catch (error) {
    return `${from}: the file cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'})`;
  }
}

/**
 * Runs the command in a shell for at most 30 seconds and returns the key that it prints, or a text that says what is
 * wrong. None of its output reaches a message, as it may be a part of the key.
 */
function runKeyCommand(command: string): Uint8Array | string {
  const name = 'OM_ENCRYPTION_KEY_COMMAND';
  try {
    const printed = execSync(command, {
      encoding: 'utf8',
      timeout: COMMAND_MS,
      killSignal: 'SIGKILL',
      maxBuffer: MAX_KEY_BYTES,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return parseKey(printed, name);
  } catch (error) {
    const { status, code } = error as { status?: number | null; code?: string };
    return `${name}: the command failed (${code ?? `exit code ${status}`}): expected it to print 64 hex digits`;
  }
}

function parseKey(text: string, from: string): Uint8Array | string {
  const key = text.trim();
  // A copy of its own: a small Buffer is a view of memory that other Buffers share.
  return KEY_FORM.test(key)
    ? Uint8Array.from(Buffer.from(key, 'hex'))
    : `${from}: expected 64 hex digits (32 random bytes)`;
}
