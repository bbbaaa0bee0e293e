import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Logger } from '../ports.ts';
import type { Tracing } from '../tracing.ts';

/** Optional, as most installations trace nothing: found beside this package if they were installed. */
const PACKAGES = [
  '@opentelemetry/api@1.9',
  '@opentelemetry/resources@2',
  '@opentelemetry/sdk-trace-node@2',
  '@opentelemetry/exporter-trace-otlp-http@0.223',
] as const;

/**
 * A thread's own traces, if the settings ask for any. Nothing of OpenTelemetry is loaded otherwise.
 * @throws EngineError `invalid` where the packages are not installed
 */
export async function createTracing(config: Config, logger: Logger): Promise<Tracing | null> {
  if (config.OM_TRACING === 'none') return null;
  try {
    const { openOtelTracing } = await import('./otel-tracing.ts');
    return openOtelTracing(logger);
  } catch (error) {
    // One package of them misses another by the name without ERR_.
    if (!(error as NodeJS.ErrnoException).code?.endsWith('MODULE_NOT_FOUND')) throw error;
    throw new EngineError(
      'invalid',
      `OM_TRACING=otlp needs packages that are not installed: npm install ${PACKAGES.join(' ')}`,
      { cause: error },
    );
  }
}
