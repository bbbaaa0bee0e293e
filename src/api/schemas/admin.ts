/** Schemas of administration: tenants, the preview of decay, and backups. */
import { z } from 'zod';
import { SECTORS } from '../../engine/index.ts';
import { count, timestamp, unit, uuid } from './memory-replies.ts';
import { BODY_EXPECTED, expected, fraction, givenId, numberUpTo, page, time, type Wire } from './values.ts';

/** Schema of a tenant's id in a request of an operator. */
export const namedTenant = z
  .string(expected('a string'))
  .min(1, 'must not be empty')
  .max(64, 'expected at most 64 characters')
  .meta({ examples: ['acme'] });

// ── Tenants ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Schema of the JSON body of `POST /tenants`, which creates a tenant. */
export const newTenant = z.strictObject(
  {
    id: givenId.describe('1 to 64 of a-z, 0-9, - and _, starting with a letter or digit.'),
    database: z
      .string(expected('a string'))
      .min(1, 'must not be empty')
      .max(32, 'expected at most 32 characters')
      .optional()
      .describe(
        'Name of the PostgreSQL database in which the tenant is placed: one of `OM_DATABASES`, or `home`, the ' +
          'default, for that of `OM_DATABASE_URL`.',
      ),
  },
  BODY_EXPECTED,
);

const database = z
  .string()
  .nullable()
  .describe(
    'Name of the PostgreSQL database in which the tenant is: one of `OM_DATABASES`, or `home` for that of ' +
      '`OM_DATABASE_URL`; null for a tenant in a file.',
  );

/** Schema of the reply 201 to `POST /tenants`, which creates a tenant. */
export const tenantReply = z
  .strictObject({ id: z.string(), created_at: timestamp, database })
  .meta({ id: 'Tenant', examples: [{ id: 'acme', created_at: 1795265978965, database: null }] });

/**
 * Schema of the reply 200 to `DELETE /tenants/:id`, if there is no such tenant. If the tenant exists, the route answers
 * with an error that says how to erase it by the command line.
 */
export const tenantGone = z.strictObject({ exists: z.literal(false) });

/** Schema of the reply 200 to `GET /tenants`, which lists the tenants of the service, oldest first. */
export const tenantPage = z.strictObject({
  items: z.array(
    z
      .strictObject({
        id: z.string(),
        created_at: timestamp,
        keys: count.describe('Keys of the tenant that are not revoked.'),
        bytes: count.describe("Size of the tenant's file; 0 before its first write, and in PostgreSQL."),
        database,
      })
      .meta({ examples: [{ id: 'acme', created_at: 1795265978965, keys: 2, bytes: 1048576, database: null }] }),
  ),
  total: count,
});

// ── Decay ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const rate = numberUpTo(10);

/**
 * Schema of the JSON body of `POST /admin/decay/preview`, which computes how far memories will have faded (lost
 * salience) at a date, with the rates of decay of the settings or with other rates.
 */
export const decayAssumptions = z.strictObject(
  {
    at: time.describe('The date to look at, which is still to come.'),
    lambda: z
      .union(
        [rate, z.partialRecord(z.enum(SECTORS), rate)],
        expected('a rate per day in 0..10, or an object of such rates by sector'),
      )
      .optional()
      .describe(
        'Rates λ of decay, per day, from now on: one for all sectors, or some by sector. Others are as in the ' +
          'settings.',
      ),
    archive_below: fraction
      .optional()
      .describe('Salience below which memories would be archived, 0 for none; by default `OM_ARCHIVE_BELOW`.'),
  },
  BODY_EXPECTED,
);

const spread = z.strictObject({
  average: unit.describe('Mean salience of the active memories of the sector.'),
  tenths: z
    .array(count)
    .length(10)
    .describe('Numbers of memories by tenth of salience: from 0 to below 0.1 first, from 0.9 to 1 last.'),
});

const fall = z
  .strictObject({ id: uuid, gist: z.string(), sector: z.enum(SECTORS), salience_from: unit, salience_to: unit })
  .meta({ id: 'SalienceFall' });

/**
 * Schema of the reply 200 to `POST /admin/decay/preview`, which computes how far memories will have faded (lost
 * salience) at a date, with the rates of decay of the settings or with other rates.
 */
export const decayReply = z.strictObject({
  at: timestamp,
  sectors: z
    .array(z.strictObject({ sector: z.enum(SECTORS), count, before: spread, after: spread }))
    .describe('The sectors with active memories; `before` is today, `after` the date, if nothing were recalled.'),
  archived: count.describe(
    'Number of active memories that would be archived by the date, as their salience is below `archive_below`.',
  ),
  archives: z
    .array(fall)
    .describe('The memories with the lowest salience among those that would be archived, lowest first, at most fifty.'),
  falls: z.array(fall).describe('The memories whose salience falls most, the largest fall first, at most ten.'),
  degraded: z
    .boolean()
    .describe(
      'True if the work that one request may cause (`OM_QUERY_WORK_MB`) ended before all memories were counted.',
    ),
});
export type DecayItem = Wire<typeof decayReply>;

// ── Backups ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Schema of the query string of `GET /admin/backups`, which lists the scheduled backups of a tenant, and the state of
 * their schedule.
 */
export const backupQuery = z.strictObject({
  ...page,
  tenant: namedTenant.optional().describe('The tenant; by default that of your key.'),
});

/**
 * Schema of the JSON body of `POST /admin/backups`, which starts a backup of a tenant into the folder of scheduled
 * backups.
 */
export const backupRequest = z.strictObject(
  { tenant: namedTenant.optional().describe('The tenant to back up; by default that of your key.') },
  BODY_EXPECTED,
);

const backupFile = z.strictObject({
  file: z.string().describe('Path within `OM_BACKUP_FOLDER`.'),
  at: timestamp.describe('Unix milliseconds of the copy.'),
  bytes: count.describe('Size of the file.'),
});

const backupSchedule = z.strictObject({
  state: z
    .enum(['waiting', 'due', 'running', 'failing'])
    .describe('`due`: a worker begins within about 15 seconds; `failing`: the last attempt failed, another follows.'),
  last_run_at: timestamp
    .nullable()
    .describe('Unix milliseconds at which the last completed backup began; null before, and after a request for one.'),
  failures: count.describe('Attempts that have failed since the last completed one, or since a backup was requested.'),
  failed_at: timestamp.nullable().describe('Unix milliseconds of the latest of these failures; null if there is none.'),
});

/**
 * Schema of the reply 200 to `GET /admin/backups`, which lists the scheduled backups of a tenant, and the state of
 * their schedule.
 */
export const backupsReply = z.strictObject({
  tenant: z.string(),
  every_ms: z.int().nullable().describe('`OM_BACKUP_EVERY` in milliseconds; null if no backups are scheduled.'),
  keep: count.describe('`OM_BACKUP_KEEP`: number of backups of a file that are kept.'),
  schedule: backupSchedule.nullable().describe('State of the schedule; null if no backups are scheduled.'),
  items: z.array(backupFile).describe("Backups of the tenant's file, newest first."),
  total: count,
  control: z
    .array(backupFile)
    .describe('The same page of the backups of the control database, which holds tenants and keys; newest first.'),
});
export type BackupsItem = Wire<typeof backupsReply>;

/**
 * Schema of the reply 202 to `POST /admin/backups`, which starts a backup of a tenant into the folder of scheduled
 * backups.
 */
export const backupRequested = z.strictObject({ tenant: z.string(), state: z.literal('due') });

// ── Settings and activity ────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Schema of the reply 200 to `GET /admin/settings`, which lists all settings of the service with their values, and
 * where each comes from.
 */
export const settingsReply = z
  .strictObject({
    items: z.array(
      z
        .strictObject({
          name: z.string(),
          about: z.string().describe('What the setting does, its unit and its range.'),
          value: z
            .string()
            .nullable()
            .describe('The value as text; null if there is none, and for a setting that may be secret.'),
          hidden: z.boolean().describe('Whether there is a value that is not shown, as it may be secret.'),
          origin: z
            .enum(['environment', 'default'])
            .describe('Whether the environment sets the value, or it is the default.'),
        })
        .meta({ id: 'Setting' }),
    ),
  })
  .meta({
    examples: [
      {
        items: [{ name: 'OM_PORT', about: 'TCP port of the API.', value: '8080', hidden: false, origin: 'default' }],
      },
    ],
  });

const kindOfRequests = z.strictObject({
  count,
  mean_ms: z.number().min(0).nullable().describe('Mean time of a request, ms; null if there was none.'),
});
const milliseconds = z.number().min(0).nullable();

/**
 * Schema of the reply 200 to `GET /admin/activity`, which shows what the service did within the last hour, minute by
 * minute, and the state of its providers.
 */
export const activityReply = z
  .strictObject({
    minutes: z
      .array(
        z
          .strictObject({
            at: timestamp.describe('End of the minute, Unix milliseconds.'),
            ms: count.describe(
              'Length of the minute in ms; the latest one is shorter, and one is longer if a reading failed.',
            ),
            requests: z
              .strictObject({
                add: kindOfRequests,
                query: kindOfRequests,
                documents: kindOfRequests,
                read: kindOfRequests,
                write: kindOfRequests,
              })
              .describe('Requests by kind: adds, queries, documents, and all other reads and writes.'),
            query_p50_ms: milliseconds.describe(
              'Time within which half of the queries were answered, ms; null without queries.',
            ),
            query_p95_ms: milliseconds.describe(
              'Time within which 95 of 100 queries were answered, ms; null without queries.',
            ),
            jobs_done: count.describe('Number of jobs that were done within the minute.'),
            jobs_dead: count.describe('Number of jobs that gave up within the minute.'),
            tokens: count.describe('Tokens of the calls of embedding providers and language models.'),
            cost_usd: z.number().min(0).describe('Cost of these calls in US dollars.'),
          })
          .meta({ id: 'ActivityMinute' }),
      )
      .describe('At most 61 minutes, the oldest first.'),
    providers: z
      .array(
        z.strictObject({
          service: z.enum(['embedding', 'language_model']),
          sector: z.string().nullable().describe('Sector whose model it is; null where one model serves all.'),
          breaker_open: z
            .boolean()
            .describe(
              'Whether the provider failed so often in a row that it is not called, or only to see whether it ' +
                'works again.',
            ),
          requests_per_minute: count.nullable().describe('Limit by the settings; null for none.'),
          tokens_per_minute: count.nullable().describe('Limit by the settings; null for none.'),
          held_back: z
            .record(z.string(), count)
            .describe(
              'Numbers of calls that had to wait or were put off since the start of the service, by reason: `budget` ' +
                '(limits of the settings), `gap` (`OM_EMBED_DELAY_MS`), `told` (what replies say is left), `pause` ' +
                '(`Retry-After`), `breaker`.',
            ),
        }),
      )
      .describe('Empty if no provider is asked.'),
  })
  .meta({
    examples: [
      {
        minutes: [
          {
            at: 1795265978965,
            ms: 60000,
            requests: {
              add: { count: 12, mean_ms: 4.2 },
              query: { count: 30, mean_ms: 6.1 },
              documents: { count: 0, mean_ms: null },
              read: { count: 4, mean_ms: 1.5 },
              write: { count: 0, mean_ms: null },
            },
            query_p50_ms: 3.1,
            query_p95_ms: 9.5,
            jobs_done: 12,
            jobs_dead: 0,
            tokens: 0,
            cost_usd: 0,
          },
        ],
        providers: [],
      },
    ],
  });
export type ActivityItem = Wire<typeof activityReply>;
