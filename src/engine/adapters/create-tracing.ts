import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Logger } from '../ports.ts';
import type { Tracing } from '../tracing.ts';

/**
 * Packages of OpenTelemetry with their versions, for npm. They are optional, because most installations use no tracing.
 */
const PACKAGES = [
  '@opentelemetry/api@1.9',
  '@opentelemetry/resources@2',
  '@opentelemetry/sdk-trace-node@2',
  '@opentelemetry/exporter-trace-otlp-http@0.223',
] as const;

/**
 * Starts tracing for this thread. If `OM_TRACING` is `none`, it returns null and loads no OpenTelemetry package.
 * @throws EngineError `invalid` if the packages are not installed
 */
export async function createTracing(config: Config, logger: Logger): Promise<Tracing | null> {
  if (config.OM_TRACING === 'none') return null;
  try {
    const { openOtelTracing } = await import('./otel-tracing.ts');
    return openOtelTracing(logger);
  } catch (error) {
    // If one of these packages misses another, the code is MODULE_NOT_FOUND, without ERR_.
    if (!(error as NodeJS.ErrnoException).code?.endsWith('MODULE_NOT_FOUND')) throw error;
    throw new EngineError(
      'invalid',
      `OM_TRACING=otlp needs packages that are not installed: npm install ${PACKAGES.join(' ')}`,
      { cause: error },
    );
  }
}
