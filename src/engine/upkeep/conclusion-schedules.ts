import { v7 as uuidv7 } from 'uuid';
import type { Config } from '../config.ts';
import { enqueueScheduledConsolidation } from '../steps/consolidate.ts';
import { enqueueReflections } from '../steps/reflect.ts';
import type { StepContext } from '../steps/step-context.ts';

type OwingContext = Pick<StepContext, 'open' | 'config' | 'clock'>;

/**
 * Returns the schedules, with their periods, that add jobs for reflections (with `OM_REFLECTION=llm`) and for
 * consolidations (with `OM_CONSOLIDATION=on`) to the ledger.
 * @param yieldTurn lets others write between two pages of users
 */
export function conclusionSchedules<Context extends OwingContext>(
  config: Config,
  yieldTurn: (context: Context) => Promise<void>,
) {
  const ofMinutes = (minutes: number) => ({ everyMs: minutes * 60_000, waitsAPeriod: false });
  const newId = uuidv7;
  return [
    ...(config.OM_REFLECTION === 'llm'
      ? [
          {
            name: 'reflect',
            ...ofMinutes(config.OM_REFLECTION_INTERVAL_MINUTES),
            run: (context: Context) => enqueueReflections(context, { newId, yieldTurn: () => yieldTurn(context) }),
          },
        ]
      : []),
    ...(config.OM_CONSOLIDATION === 'on'
      ? [
          {
            name: 'consolidate',
            ...ofMinutes(config.OM_CONSOLIDATION_INTERVAL_MINUTES),
            run: async (context: Context) => enqueueScheduledConsolidation(context, newId),
          },
        ]
      : []),
  ];
}
