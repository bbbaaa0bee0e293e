/** Schemas of administration: tenants, the preview of decay, and backups. */
import { z } from 'zod';
import { SECTORS } from '../../engine/index.ts';
import { count, timestamp, unit, uuid } from './memory-replies.ts';
import { BODY_EXPECTED, expected, fraction, givenId, numberUpTo, page, time, type Wire } from './values.ts';

/** A tenant of the service, named by operators. */
export const namedTenant = z
  .string(expected('a string'))
  .min(1, 'must not be empty')
  .max(64, 'expected at most 64 characters')
  .meta({ examples: ['acme'] });

// ── Tenants ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export const newTenant = z.strictObject(
  { id: givenId.describe('1 to 64 of a-z, 0-9, - and _, starting with a letter or digit.') },
  BODY_EXPECTED,
);

export const tenantReply = z
  .strictObject({ id: z.string(), created_at: timestamp })
  .meta({ id: 'Tenant', examples: [{ id: 'acme', created_at: 1795265978965 }] });

export const tenantGone = z.strictObject({ exists: z.literal(false) });

export const tenantPage = z.strictObject({
  items: z.array(
    z
      .strictObject({
        id: z.string(),
        created_at: timestamp,
        keys: count.describe('Keys of the tenant that are not revoked.'),
        bytes: count.describe("Size of the tenant's file; 0 before its first write."),
      })
      .meta({ examples: [{ id: 'acme', created_at: 1795265978965, keys: 2, bytes: 1048576 }] }),
  ),
  total: count,
});

// ── Decay ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const rate = numberUpTo(10);

export const decayAssumptions = z.strictObject(
  {
    at: time.describe('The date to look at, which is still to come.'),
    lambda: z
      .union(
        [rate, z.partialRecord(z.enum(SECTORS), rate)],
        expected('a rate per day in 0..10, or an object of such rates by sector'),
      )
      .optional()
      .describe('Rates of decay per day, one for all or by sector; those that are left out are as the settings say.'),
    archive_below: fraction
      .optional()
      .describe('Salience below which memories would be archived, 0 for none; by default `OM_ARCHIVE_BELOW`.'),
  },
  BODY_EXPECTED,
);

const spread = z.strictObject({
  average: unit,
  tenths: z.array(count).length(10).describe('Memories by tenth of salience, from 0 to below 0.1 up to 0.9 to 1.'),
});

export const decayReply = z.strictObject({
  at: timestamp,
  sectors: z
    .array(z.strictObject({ sector: z.enum(SECTORS), count, before: spread, after: spread }))
    .describe('The sectors with active memories; `before` is today, `after` the date, if nothing were recalled.'),
  archived: count.describe('Active memories whose salience would be below `archive_below`.'),
  falls: z
    .array(z.strictObject({ id: uuid, sector: z.enum(SECTORS), salience_from: unit, salience_to: unit }))
    .describe('The memories whose salience falls most, at most ten.'),
  degraded: z.boolean().describe('True if the work that one request may cause ended before all were counted.'),
});
export type DecayItem = Wire<typeof decayReply>;

// ── Backups ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export const backupQuery = z.strictObject({
  ...page,
  tenant: namedTenant.optional().describe('The tenant; by default that of your key.'),
});

export const backupRequest = z.strictObject(
  { tenant: namedTenant.optional().describe('The tenant to back up; by default that of your key.') },
  BODY_EXPECTED,
);

const backupFile = z.strictObject({
  file: z.string().describe('Path within `OM_BACKUP_FOLDER`.'),
  at: timestamp.describe('Unix milliseconds of the copy.'),
  bytes: count,
});

const backupSchedule = z.strictObject({
  state: z
    .enum(['waiting', 'due', 'running', 'failing'])
    .describe('`due`: a worker begins within about 15 seconds; `failing`: the last attempt failed, another follows.'),
  last_run_at: timestamp
    .nullable()
    .describe('Unix milliseconds at which the last completed backup began; null before, and after a request for one.'),
  failures: count.describe('Attempts that have failed since the last completed one.'),
  failed_at: timestamp.nullable(),
});

export const backupsReply = z.strictObject({
  tenant: z.string(),
  every_ms: z.int().nullable().describe('`OM_BACKUP_EVERY` in milliseconds; null if no backups are scheduled.'),
  keep: count.describe('`OM_BACKUP_KEEP`.'),
  schedule: backupSchedule.nullable(),
  items: z.array(backupFile).describe("Backups of the tenant's file, newest first."),
  total: count,
  control: z.array(backupFile).describe('Backups of the control database, which holds tenants and keys.'),
});
export type BackupsItem = Wire<typeof backupsReply>;

export const backupRequested = z.strictObject({ tenant: z.string(), state: z.literal('due') });
