import { z } from 'zod';
import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Clock, TextAnalyzer } from '../ports.ts';
import type { SensitiveKind, SensitiveSpan } from '../types.ts';
import { FairSemaphore } from './fair-semaphore.ts';

/** Greatest number of UTF-16 code units of one request; a longer text is sent in several requests. */
const PIECE = 32_000;
/**
 * Number of UTF-16 code units by which the texts of two consecutive requests overlap, so that a name that is cut at the
 * end of one request is complete in the next.
 */
const OVERLAP = 200;
/** Greatest size of a reply (bytes); a larger one counts as a failure. */
const MAX_REPLY_BYTES = 4 * 1024 * 1024;
/**
 * Time after a failure for which the analyzer is not called for the same tenant (ms), so that not every added memory
 * waits for the time limit.
 */
const REST_MS = 5_000;
/** Greatest number of requests at the same time, for all tenants together; further ones wait. */
const MAX_REQUESTS = 8;

/**
 * Kinds of sensitive data by Presidio's names of entities. An entity with another name gets the kind `other_personal`,
 * unless `IGNORED` has its name.
 */
const KINDS: ReadonlyMap<string, SensitiveKind> = new Map([
  ['PERSON', 'person'],
  ['LOCATION', 'location'],
  ['EMAIL_ADDRESS', 'email'],
  ['PHONE_NUMBER', 'phone'],
  ['CREDIT_CARD', 'card'],
  ['IBAN_CODE', 'iban'],
  ['US_SSN', 'us_ssn'],
  ['IP_ADDRESS', 'ip_address'],
  ['MAC_ADDRESS', 'mac_address'],
]);
/** Presidio's names of entities that are not reported, since they do not identify a person. */
const IGNORED: ReadonlySet<string> = new Set(['DATE_TIME', 'NRP', 'URL', 'ORGANIZATION']);

const replySchema = z
  .array(z.object({ entity_type: z.string().max(100), start: z.int().min(0), end: z.int().min(0) }))
  .max(100_000);

/**
 * Creates a client of an analyzer that finds personal data, with Presidio's protocol: `POST /analyze` with `text`,
 * `language` and `score_threshold`. Its address may be private, since the operator sets it. While the analyzer fails,
 * `find` rejects with EngineError `unavailable`, or returns an empty list if `OM_PII_FAIL` is `store`. After a failure
 * it does so for 5 s without a request. Requests wait while 8 others run. Tenants have equal shares of the requests,
 * and a failure for one tenant's text does not affect other tenants.
 * @returns a function that returns the analyzer of a tenant by the tenant's id; null if `OM_PII_URL` is not set
 */
export function createTextAnalyzer(config: Config, clock: Clock): ((tenantId: string) => TextAnalyzer) | null {
  const { OM_PII_URL: base, OM_PII_TIMEOUT_MS: timeoutMs, OM_PII_FAIL: onFailure } = config;
  if (base === undefined) return null;
  const url = `${base.replace(/\/+$/, '')}/analyze`;
  const semaphore = new FairSemaphore(MAX_REQUESTS);
  /** For each tenant, by id, the time of the last failure, after which the analyzer rests, Unix ms. */
  const failures = new Map<string, number>();
  /** Whether the analyzer is not called for a tenant now; false where the clock was set back since it failed. */
  const isResting = (tenantId: string) => {
    const since = clock.now() - (failures.get(tenantId) ?? -Infinity);
    return since >= 0 && since < REST_MS;
  };

  async function ask(tenantId: string, text: string): Promise<SensitiveSpan[]> {
    await semaphore.acquire(tenantId);
    try {
      const body = { text, language: config.OM_PII_LANGUAGE, score_threshold: config.OM_PII_MIN_SCORE };
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
      });
      if (!response.ok) throw new Error(`status ${response.status}`);
      return spansOf(text, replySchema.parse(JSON.parse(await boundedText(response))));
    } finally {
      semaphore.release(tenantId);
    }
  }

  return (tenantId) => ({
    async find(text) {
      const found: SensitiveSpan[] = [];
      try {
        if (isResting(tenantId)) throw new Error('it failed a moment ago');
        failures.delete(tenantId);
        for (let from = 0; from === 0 || from + OVERLAP < text.length; from += PIECE - OVERLAP) {
          const spans = await ask(tenantId, text.slice(from, from + PIECE));
          found.push(...spans.map((span) => ({ ...span, start: span.start + from, end: span.end + from })));
        }
      } catch {
        // The error has no `cause`, since the cause may quote the text.
        if (!isResting(tenantId)) failures.set(tenantId, clock.now());
        if (onFailure === 'store') return [];
        throw new EngineError('unavailable', 'the analyzer at OM_PII_URL does not answer: nothing was stored', {
          retryAfterMs: REST_MS,
        });
      }
      return found;
    },
  });
}

async function boundedText(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += part.length;
    if (bytes > MAX_REPLY_BYTES) throw new Error('the reply is too long');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

/**
 * Converts the entities of a reply, whose offsets count code points, to spans in UTF-16 code units. Ignored kinds and
 * offsets outside the text are dropped.
 */
function spansOf(text: string, entities: z.infer<typeof replySchema>): SensitiveSpan[] {
  const offsets = [0];
  for (const sign of text) offsets.push(offsets.at(-1)! + sign.length);
  return entities.flatMap(({ entity_type: type, start, end }) => {
    const [from, to] = [offsets[start], offsets[end]];
    if (IGNORED.has(type) || from === undefined || to === undefined || from >= to) return [];
    return [{ kind: KINDS.get(type) ?? ('other_personal' as const), start: from, end: to }];
  });
}
