import { createTextAnalyzer } from '../adapters/text-analyzer.ts';
import type { Config } from '../config.ts';
import type { ControlDatabase } from '../control/control-database.ts';
import { readPrivacyPolicy } from '../control/privacy-policy.ts';
import type { Metrics } from '../metrics.ts';
import type { Clock } from '../ports.ts';
import { createGuard, type PrivacyGuard } from '../privacy/guard.ts';

/** Makes the function that returns what screens the texts of a worker's steps, by the path of the tenant's file. */
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
  const analyzer = createTextAnalyzer(config, clock);
  return (path) => {
    const tenant = control.listTenants().find(({ id }) => control.findTenantPath(id) === path);
    return createGuard({
      policy: () => readPrivacyPolicy(control, config, tenant?.id ?? ''),
      analyzer,
      count: (labels, values) => metrics.sensitiveValues.inc(labels, values),
    });
  };
}
