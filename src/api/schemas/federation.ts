/** Schemas of federated queries and of the servers to which they are sent. */
import { z } from 'zod';
import { FEDERATION_LIMITS, MEMBER_OUTCOMES } from '../../engine/index.ts';
import { LIMITS } from './value-limits.ts';
import { count, timestamp, uuid, writer } from './memory-replies.ts';
import { match, matchExample, type MatchItem } from './query-replies.ts';
import { querySchema } from './query.ts';
import { BODY_EXPECTED, expected, jsonObject, label, tags, text, type Wire } from './values.ts';

// ── Servers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const serverName = text(FEDERATION_LIMITS.name).regex(
  /^[a-z0-9][a-z0-9_-]*$/,
  'expected a-z, 0-9, - and _, starting with a letter or digit',
);

/**
 * Schema of the JSON body of `POST /federation/servers`, which registers another Cairn server, so that the tenant's
 * federated queries can be sent to it.
 */
export const newServer = z.strictObject(
  {
    name: serverName.describe('Name by which `servers` of `POST /federation/query` names it; unique in the tenant.'),
    url: text(LIMITS.urlCharacters)
      .describe(
        'Address of the server: https at port 443 of a public address. In the networks of ' +
          '`OM_FEDERATION_ALLOW` also http, and any port.',
      )
      .meta({ examples: ['https://memory.example.com'] }),
    key: text(FEDERATION_LIMITS.key)
      .regex(/^[\x21-\x7e]+$/, 'expected visible ASCII')
      .optional()
      .describe(
        'API key that the other server accepts; the role `read` is enough. It is stored only if the data folder is ' +
          'sealed (encrypted, `OM_ENCRYPTION_KEY_FILE`), and no reply shows it. Left out, questions are sent without ' +
          'a key.',
      ),
    tenant: label(FEDERATION_LIMITS.tenant)
      .regex(/^[a-z0-9][a-z0-9_-]*$/, 'expected the id of a tenant')
      .optional()
      .describe('Tenant of the other server that is asked, one of those of `key`; the first of them if left out.'),
  },
  BODY_EXPECTED,
);

/**
 * Schema of the reply 201 to `POST /federation/servers`, which registers another Cairn server, so that the tenant's
 * federated queries can be sent to it.
 */
export const server = z
  .strictObject({
    name: z.string(),
    url: z.string(),
    tenant: z
      .string()
      .nullable()
      .describe('Tenant of that server that is asked; null for the first tenant of the stored key.'),
    has_key: z.boolean().describe('Whether a key is stored, with which questions are sent.'),
    created_at: timestamp.describe('When the server was registered.'),
    written_by: writer.describe('Public id of the key that registered the server; null if that is not known.'),
  })
  .meta({ id: 'FederationServer' });
export type ServerItem = Wire<typeof server>;
/**
 * Schema of the reply 200 to `GET /federation/servers`, which lists the servers to which the tenant's federated queries
 * can be sent, without their keys.
 */
export const serverList = z.strictObject({ items: z.array(server).describe('By name.'), total: count });
/** Schema of the reply 200 to `DELETE /federation/servers/:name`, which deletes a registered server and its key. */
export const removedServer = z.strictObject({ removed: z.literal(true) });

// ── Questions ────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Schema of the JSON body of `POST /federation/query`. It has the fields of a query that mean the same on every server.
 * Weights and profiles are left to each member, since the scores that are compared are calibrated for them.
 */
export const federatedQuery = z
  .strictObject(
    {
      ...querySchema.pick({
        query: true,
        k: true,
        user_id: true,
        filters: true,
        min_score: true,
        cut: true,
        as_of: true,
        deep_recall: true,
      }).shape,
      tenants: z
        .array(label(FEDERATION_LIMITS.tenant).min(1, 'must not be empty'), expected('a list of strings'))
        .max(LIMITS.federationMembers, `at most ${LIMITS.federationMembers} entries`)
        .optional()
        .describe(
          'Tenants of this server that are asked, among those of your key; all of them if left out, none for `[]`.',
        ),
      servers: z
        .array(serverName, expected('a list of strings'))
        .max(FEDERATION_LIMITS.servers, `at most ${FEDERATION_LIMITS.servers} entries`)
        .optional()
        .describe('Names of registered servers that are asked; none if left out.'),
    },
    BODY_EXPECTED,
  )
  .meta({ id: 'FederatedQuery' });
export type FederatedQueryBody = z.output<typeof federatedQuery>;

/** The fields of a match that servers of all versions send. */
const FIELDS = {
  id: true,
  user_id: true,
  session_id: true,
  external_id: true,
  content: true,
  title: true,
  type: true,
  tags: true,
  metadata: true,
  primary_sector: true,
  created_at: true,
  event_time: true,
  score: true,
} as const;
const memberMatch = match.pick(FIELDS);

export type MemberMatch = Wire<typeof memberMatch>;
/**
 * Schema of a match that another server sent. Its texts have the limits of memories of this server; unknown fields are
 * ignored.
 */
export const foreignMatch = z.object({
  ...memberMatch.shape,
  content: text(LIMITS.contentBytes),
  title: text(LIMITS.titleCharacters),
  tags,
  metadata: jsonObject,
});
/** Returns a match with only the fields that servers of all versions send. */
export const memberMatchOf = (match: MatchItem): MemberMatch =>
  Object.fromEntries(Object.entries(match).filter(([name]) => name in FIELDS)) as MemberMatch;
/**
 * Schema of the fields of another server's answer that are used here. It checks neither the form nor the number of the
 * matches; `foreignMatch` checks each match later.
 */
export const foreignAnswer = z.object({
  matches: z.custom<readonly unknown[]>(Array.isArray),
  degraded: z.boolean(),
  recall_id: uuid,
});

const origin = z
  .strictObject({
    tenant: z
      .string()
      .nullable()
      .describe(
        'The tenant, of this server or of the one in `server`; null for the first tenant of the key that is ' +
          'stored for that server.',
      ),
    server: z.string().nullable().describe('Name of the other server; null for this server.'),
  })
  .meta({ id: 'Origin', examples: [{ tenant: 'default', server: null }] });
export type OriginItem = Wire<typeof origin>;

const federatedMatch = z.strictObject({ origin, ...memberMatch.shape }).meta({ id: 'FederatedMatch' });

const member = z
  .strictObject({
    tenant: origin.shape.tenant,
    server: origin.shape.server,
    outcome: z
      .enum(MEMBER_OUTCOMES)
      .describe(
        '`answered`: it answered. `timeout`: it did not answer within `OM_FEDERATION_TIMEOUT_MS`. `unreachable`: no ' +
          'connection to the server was made, or it broke, or its address is not allowed. `refused`: your key has no ' +
          '`queries` left in this tenant, or the server answered with an error. `invalid`: the reply of the server ' +
          'is not the answer of a Cairn server, is too large, or is a redirect. `failed`: the tenant cannot be read, ' +
          'or the answers of other servers leave no memory for the one of this server.',
      ),
    detail: z.string().nullable().describe('Why there is no answer, as a sentence; null if it answered.'),
    matches: count.describe(
      'Number of matches in its answer; of these, only those among the best `k` of all members are returned.',
    ),
    degraded: z.boolean().describe('Whether its answer may be incomplete or ranked worse than usual, or is missing.'),
    recall_id: uuid
      .nullable()
      .describe(
        'Id of its answer in the recall log of the member (`GET /recalls/{id}` there); null without an answer.',
      ),
    ms: z.number().min(0).describe('Time until the member answered or failed, ms.'),
  })
  .meta({ id: 'FederationMember' });

const example = Object.fromEntries(Object.entries(matchExample).filter(([name]) => name in FIELDS));

/**
 * Schema of the reply 200 to `POST /federation/query`, which sends one query to several tenants and servers, and merges
 * their answers.
 */
export const federatedAnswer = z
  .strictObject({
    query: z.string(),
    matches: z.array(federatedMatch).describe('Best first.'),
    members: z
      .array(member)
      .describe(
        'The result of each member: first the tenants, then the servers, in the order in which the request names them.',
      ),
    degraded: z.boolean().describe('Whether a member did not answer, or its answer is `degraded`.'),
    truncated: z
      .literal(true)
      .exactOptional()
      .describe(
        'The last matches were left out, since all matches together may have at most 6 MiB of JSON; absent otherwise.',
      ),
  })
  .meta({
    id: 'FederatedAnswer',
    examples: [
      {
        query: 'when do we deploy to staging?',
        matches: [{ origin: { tenant: null, server: 'berlin' }, ...example }],
        members: [
          {
            ...{ tenant: 'default', server: null, outcome: 'answered', detail: null },
            ...{ matches: 0, degraded: false, recall_id: '01a1fe39-072e-72be-90b2-5f657e247f4a', ms: 2.1 },
          },
          {
            ...{ tenant: null, server: 'berlin', outcome: 'answered', detail: null },
            ...{ matches: 1, degraded: false, recall_id: '01a1fe39-0a31-7c5e-8a7b-2f4b9f6a1c11', ms: 14.8 },
          },
        ],
        degraded: false,
      },
    ],
  });
export type FederatedAnswerItem = Wire<typeof federatedAnswer>;
