import { integer } from './setting-kinds.ts';

/** The schema of the settings of the recall log, which stores answered queries. */
export const RECALL_SETTINGS = {
  OM_RECALL_DAYS: integer(7, 0, 3_650).describe(
    'How long answers can be looked up and asked again by their recall_id (days); 0 keeps none.',
  ),
  OM_RECALL_MB: integer(64, 1, 1_000_000).describe(
    'Most megabytes of kept answers of each tenant; beyond it the oldest leave.',
  ),
};
