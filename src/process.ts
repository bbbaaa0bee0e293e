import { pino, type DestinationStream, type Logger } from 'pino';
import type { Config } from './engine/index.ts';

/** What every long-running process of Cairn does the same way: its log, its version, its end. */

/** @param thread names a thread that is not the main one, on each of its lines */
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

/** Nothing logs such a field. Should something ever, its name is all that is seen of it. */
const NEVER_LOGGED: ReadonlySet<string> = new Set([
  ...['content', 'query', 'text', 'title', 'gist', 'metadata', 'tags', 'filename', 'file_name'],
  ...['authorization', 'x-api-key', 'cookie', 'key', 'apikey', 'secret', 'password', 'token'],
]);
const DEPTH_MOST = 4;

/** Written here rather than as pino's `redact`, whose wildcards take 34 µs a line for two of these names. */
function withoutSecrets(fields: Record<string, unknown>, depth = 0): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (NEVER_LOGGED.has(name.toLowerCase())) return [name, '[redacted]'];
      if (!Array.isArray(value) && !isPlain(value)) return [name, value];
      if (depth === DEPTH_MOST) return [name, '[too deep]'];
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

/**
 * Runs `shutDown` at the first SIGTERM or SIGINT and ends the process when it is done, or OM_SHUTDOWN_MS later with code 1. A second
 * signal ends it at once: what was acknowledged is on disk already.
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
