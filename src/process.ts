/** Log and shutdown, which are the same in every long-running process of Cairn. */
import fs from 'node:fs';
import { pino, type DestinationStream, type Logger } from 'pino';
import type { Config } from './engine/index.ts';

/**
 * Makes the logger of a thread, which writes one JSON line an entry at OM_LOG_LEVEL and above.
 * @param thread      name of the thread on each of its lines; left out for the main thread
 * @param destination standard output by default
 */
export function createLogger(config: Config, thread?: string, destination?: DestinationStream): Logger {
  return pino(
    {
      level: config.OM_LOG_LEVEL,
      base: thread === undefined ? null : { thread },
      formatters: { log: withoutSecrets },
    },
    destination,
  );
}

/** Fields that must never be logged. The code logs none of them; if it did, only the name of the field would appear. */
const NEVER_LOGGED: ReadonlySet<string> = new Set([
  'content',
  'query',
  'text',
  'title',
  'gist',
  'metadata',
  'tags',
  'filename',
  'file_name',
  'authorization',
  'x-api-key',
  'cookie',
  'key',
  'apikey',
  'secret',
  'password',
  'token',
]);
/** Deepest level of nested fields that is logged. */
const MAX_DEPTH = 4;

/**
 * Replaces the values of fields that must not be logged. Pino's own `redact` is not used, because its wildcards take 34
 * µs a line for two of these names.
 */
function withoutSecrets(fields: Record<string, unknown>, depth = 0): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (NEVER_LOGGED.has(name.toLowerCase())) return [name, '[redacted]'];
      if (!Array.isArray(value) && !isPlain(value)) return [name, value];
      if (depth === MAX_DEPTH) return [name, '[too deep]'];
      return [
        name,
        Array.isArray(value)
          ? value.map((item: unknown) => withoutSecrets({ item }, depth + 1)['item'])
          : withoutSecrets(value, depth + 1),
      ];
    }),
  );
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** Bits of a file's mode that let its group or others read it. */
const READABLE_BY_OTHERS = 0o044;

/**
 * Warns once if the `.env` that was loaded can be read by its group or by others, as it may hold keys. Windows has no
 * such modes.
 * @param environment names the file in `CAIRN_ENV_FILE`, if one was loaded
 */
export function warnOfReadableEnvFile(environment: NodeJS.ProcessEnv, logger: Logger): void {
  const file = environment['CAIRN_ENV_FILE'];
  if (file === undefined || process.platform === 'win32') return;
  const mode = fs.statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & READABLE_BY_OTHERS) === 0) return;
  logger.warn({ path: file, mode: (mode & 0o777).toString(8).padStart(4, '0'), expected: '0600' }, 'env_file_readable');
}

/**
 * Runs `shutDown` at the first SIGTERM or SIGINT and ends the process when it is done, or with code 1 if it takes
 * longer than OM_SHUTDOWN_MS and a second. A second signal ends the process at once: acknowledged writes are on disk
 * already.
 * @returns a function that ends the process in the same way for another reason
 */
export function endOnSignals(
  config: Config,
  logger: Logger,
  shutDown: (reason: string) => Promise<void>,
): (reason: string, code: number) => void {
  let ending = false;
  const end = (reason: string, code: number) => {
    if (ending) process.exit(code === 0 ? 130 : code);
    ending = true;
    logger.info({ reason }, 'stopping');
    setTimeout(() => {
      logger.error({ afterMs: config.OM_SHUTDOWN_MS }, 'stop_took_too_long');
      process.exit(1);
    }, config.OM_SHUTDOWN_MS + 1_000).unref();
    shutDown(reason).then(
      () => process.exit(code),
      (error: unknown) => {
        logger.error({ error: String(error) }, 'stop_failed');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', () => end('SIGTERM', 0));
  process.on('SIGINT', () => end('SIGINT', 0));
  return end;
}
