import { createTextAnalyzer } from '../adapters/text-analyzer.ts';
import type { Config } from '../config.ts';
import type { ControlDatabase } from '../control/control-database.ts';
import { readPrivacyPolicy } from '../control/privacy-policy.ts';
import type { Metrics } from '../metrics.ts';
import type { Clock } from '../ports.ts';
import { createGuard, type PrivacyGuard } from '../privacy/guard.ts';

/**
 * Creates a function that returns the privacy guard of a tenant, which screens the texts that a worker's steps store.
 * Its argument is the path of the tenant's file.
 */
export function createTenantGuards({
  config,
  clock,
  metrics,
  control,
}: {
  readonly config: Config;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly control: ControlDatabase;
}): (path: string) => PrivacyGuard {
  const analyzerOf = createTextAnalyzer(config, clock);
  return (path) => {
    const tenantId = control.listTenants().find(({ id }) => control.findTenantPath(id) === path)?.id ?? '';
    return createGuard({
      policy: () => readPrivacyPolicy(control, config, tenantId),
      analyzer: analyzerOf?.(tenantId) ?? null,
      count: (labels, values) => metrics.sensitiveValues.inc(labels, values),
    });
  };
}
