import { z } from 'zod';
import { integer } from './setting-kinds.ts';

/** The schema of the settings of consolidation, which makes one memory of several that say nearly the same. */
export const CONSOLIDATION_SETTINGS = {
  OM_CONSOLIDATION: z
    .enum(['off', 'on'])
    .default('off')
    .describe(
      'on gathers memories that say nearly the same at intervals; with off they are gathered only when ' +
        'POST /consolidations asks for it.',
    ),
  OM_CONSOLIDATION_INTERVAL_MINUTES: integer(1440, 1, 525_600).describe(
    'With OM_CONSOLIDATION=on, how often Cairn looks for memories to gather (minutes).',
  ),
};
