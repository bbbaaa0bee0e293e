import { duration, flag, integer } from './setting-kinds.ts';

/** The schema of the settings of the change feed. */
export const EVENT_SETTINGS = {
  OM_EVENTS: flag(true).describe('Whether changes leave events in the feed at GET /events.'),
  OM_EVENT_DAYS: integer(7, 1, 3_650).describe('How long events are kept (days).'),
  OM_EVENT_ROWS: integer(200_000, 1_000, 1_000_000_000).describe('Most events that are kept of each tenant.'),
};

/** The schema of the setting of evaluation sets. */
export const EVAL_SETTINGS = {
  OM_EVAL_EVERY: duration(5 * 60_000, 365 * 86_400_000, 'expected hours, or a duration such as 30m, 6h or 1d').describe(
    'How often the evaluation sets of each tenant are run: hours, or a duration such as 30m, 6h or 1d, of 5 minutes ' +
      'to 365 days; empty for never.',
  ),
};
