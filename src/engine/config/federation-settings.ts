import { z } from 'zod';
import { parseNetworks } from './networks.ts';
import { integer } from './setting-kinds.ts';

/** The schema of the settings of queries that are sent to several tenants and other Cairn servers. */
export const FEDERATION_SETTINGS = {
  OM_FEDERATION_ALLOW: z
    .string()
    .default('')
    .refine(
      (text) => parseNetworks(text) !== undefined,
      'expected at most 1000 networks such as 10.1.2.0/24 or 127.0.0.1, comma-separated',
    )
    .describe(
      'Networks in which other Cairn servers are asked although they are not public, comma-separated, such as ' +
        '10.1.2.0/24 or 127.0.0.1; there also by http and at any port. Elsewhere only https at public addresses, and ' +
        'not in OM_FETCH_DENY.',
    ),
  OM_FEDERATION_TIMEOUT_MS: integer(10_000, 100, 60_000).describe(
    'Longest time that a federated question waits for each tenant and server that it asks (ms).',
  ),
};
