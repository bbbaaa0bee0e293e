/** Logging and shutdown, which are the same in every long-running process of Cairn. */
import fs from 'node:fs';
import { pino, type DestinationStream, type Logger } from 'pino';
import type { Config } from './engine/index.ts';

/**
 * Makes the logger of a thread. It writes each entry at OM_LOG_LEVEL or above as one JSON line, and replaces the values
 * of fields such as `content` and `key`.
 * @param thread name of the thread in each of its lines; the main thread passes none
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

/**
 * Fields whose values must never be logged, in lower case. The code logs none of them; if it did, the value would be
 * `[redacted]`.
 */
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
/** Greatest depth of nested fields that is logged. What lies deeper becomes `[too deep]`. */
const MAX_DEPTH = 4;

/**
 * Returns a copy of a log entry's fields in which `NEVER_LOGGED` fields have the value `[redacted]`, at every depth.
 * Pino's own `redact` is not used, because its wildcards take 34 µs a line for two of these names.
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

/** Bits of a file's mode that let its group or all other users read it. */
const READABLE_BY_OTHERS = 0o044;

/**
 * Logs one warning if the loaded `.env` file can be read by its group or by other users, as it may hold keys. Does
 * nothing on Windows, which has no such modes, or if no file was loaded.
 * @param environment names the file in `CAIRN_ENV_FILE`
 */
export function warnOfReadableEnvFile(environment: NodeJS.ProcessEnv, logger: Logger): void {
  const file = environment['CAIRN_ENV_FILE'];
  if (file === undefined || process.platform === 'win32') return;
  const mode = fs.statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & READABLE_BY_OTHERS) === 0) return;
  logger.warn({ path: file, mode: (mode & 0o777).toString(8).padStart(4, '0'), expected: '0600' }, 'env_file_readable');
}

/**
 * Runs `shutDown` at the first SIGTERM or SIGINT and then ends the process with code 0. The code is 1 if `shutDown`
 * fails or takes more than OM_SHUTDOWN_MS + 1 s. A signal while the process is ending ends it at once, with code 130:
 * acknowledged writes are on disk already.
 * @returns a function that also runs `shutDown` and ends the process, for another reason and with another code; it does
 *   nothing once the process is ending
 */
export function endOnSignals(
  config: Config,
  logger: Logger,
  shutDown: (reason: string) => Promise<void>,
): (reason: string, code: number) => void {
  let ending = false;
  const end = (reason: string, code: number) => {
    if (ending) return;
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
  const onSignal = (signal: string) => {
    if (ending) process.exit(130);
    end(signal, 0);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  return end;
}
