import { flag, integer } from './setting-kinds.ts';

/** The schema of the settings of the change feed. */
export const EVENT_SETTINGS = {
  OM_EVENTS: flag(true).describe('Whether changes leave events in the feed at GET /events.'),
  OM_EVENT_DAYS: integer(7, 1, 3_650).describe('How long events are kept (days).'),
  OM_EVENT_ROWS: integer(200_000, 1_000, 1_000_000_000).describe('Most events that are kept of each tenant.'),
};
