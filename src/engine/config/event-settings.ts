import { z } from 'zod';
import { parseNetworks } from './networks.ts';
import { duration, flag, integer } from './setting-kinds.ts';

/** The schema of the settings of the change feed. */
export const EVENT_SETTINGS = {
  OM_EVENTS: flag(true).describe('Whether changes leave events in the feed at GET /events.'),
  OM_EVENT_DAYS: integer(7, 1, 3_650).describe('How long events are kept (days).'),
  OM_EVENT_ROWS: integer(200_000, 1_000, 1_000_000_000).describe('Most events that are kept of each tenant.'),
};

/** The schema of the settings of webhooks. */
export const WEBHOOK_SETTINGS = {
  OM_WEBHOOK_ALLOW: z
    .string()
    .default('')
    .refine(
      (text) => parseNetworks(text) !== undefined,
      'expected at most 1000 networks such as 10.1.2.0/24 or 127.0.0.1, comma-separated',
    )
    .describe(
      'Networks that webhooks are delivered to although they are not public, comma-separated, such as 10.1.2.0/24 or ' +
        '127.0.0.1; there also by http and at any port. Elsewhere only https at public addresses, and not to ' +
        'OM_FETCH_DENY.',
    ),
  OM_WEBHOOK_ATTEMPTS: integer(8, 1, 20).describe(
    'How often a delivery of a webhook is tried before it is dead; the pauses grow from seconds to hours.',
  ),
};

/** The schema of the setting of batch receipts, which list what each item of a batch has become. */
export const RECEIPT_SETTINGS = {
  OM_RECEIPT_DAYS: integer(30, 1, 3_650).describe('How long receipts of batches are kept (days).'),
};

/** The schema of the setting of evaluation sets. */
export const EVAL_SETTINGS = {
  OM_EVAL_EVERY: duration(5 * 60_000, 365 * 86_400_000, 'expected hours, or a duration such as 30m, 6h or 1d').describe(
    'How often the evaluation sets of each tenant are run: hours, or a duration such as 30m, 6h or 1d, of 5 minutes ' +
      'to 365 days; empty for never.',
  ),
};
