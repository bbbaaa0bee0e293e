import { pino, type Logger } from 'pino';
import type { Config } from './engine/config.ts';

/** What every long-running process of Cairn does the same way: its log, its version, its end. */

export function createLogger(config: Config): Logger {
  return pino({ level: config.OM_LOG_LEVEL, base: null });
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
