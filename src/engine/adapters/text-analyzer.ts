import { z } from 'zod';
import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Clock, TextAnalyzer } from '../ports.ts';
import type { SensitiveKind, SensitiveSpan } from '../types.ts';

/** Most characters of one request; a longer text is asked about in pieces. */
const PIECE = 32_000;
/** Characters that two pieces share, so that a name at the end of one is whole in the next. */
const OVERLAP = 200;
/** Most bytes of a reply. */
const MAX_REPLY_BYTES = 4 * 1024 * 1024;
/** Time after a failure in which the analyzer is left alone (ms), so that not every add waits for its time limit. */
const REST_MS = 5_000;
/** Most requests in flight. */
const MAX_REQUESTS = 8;

/** Kinds by the names that Presidio gives to entities. Other names of persons' data become `other_personal`. */
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
/** Names of entities that lead to nobody by themselves. */
const IGNORED: ReadonlySet<string> = new Set(['DATE_TIME', 'NRP', 'URL', 'ORGANIZATION']);

const replySchema = z
  .array(z.object({ entity_type: z.string().max(100), start: z.int().min(0), end: z.int().min(0) }))
  .max(100_000);

/**
 * Makes a client of an analyzer that speaks Presidio's protocol: `POST /analyze` with `text`, `language` and
 * `score_threshold`. Its address may be private, since the operator names it. Returns null without `OM_PII_URL`.
 */
export function createTextAnalyzer(config: Config, clock: Clock): TextAnalyzer | null {
  const { OM_PII_URL: base, OM_PII_TIMEOUT_MS: timeoutMs, OM_PII_FAIL: onFailure } = config;
  if (base === undefined) return null;
  const url = `${base.replace(/\/+$/, '')}/analyze`;
  let restsUntil = 0;
  let inFlight = 0;
  const waiting: (() => void)[] = [];

  async function ask(text: string): Promise<SensitiveSpan[]> {
    if (inFlight >= MAX_REQUESTS) await new Promise<void>((resolve) => waiting.push(resolve));
    else inFlight += 1;
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
      const next = waiting.shift();
      // The place is handed on, so that nobody who comes later takes it.
      if (next === undefined) inFlight -= 1;
      else next();
    }
  }

  return {
    async find(text) {
      const found: SensitiveSpan[] = [];
      try {
        if (clock.now() < restsUntil) throw new Error('it failed a moment ago');
        for (let from = 0; from === 0 || from + OVERLAP < text.length; from += PIECE - OVERLAP) {
          const spans = await ask(text.slice(from, from + PIECE));
          found.push(...spans.map((span) => ({ ...span, start: span.start + from, end: span.end + from })));
        }
      } catch {
        // The cause is left out: it may repeat the text.
        if (clock.now() >= restsUntil) restsUntil = clock.now() + REST_MS;
        if (onFailure === 'store') return [];
        throw new EngineError('unavailable', 'the analyzer at OM_PII_URL does not answer: nothing was stored', {
          retryAfterMs: REST_MS,
        });
      }
      return found;
    },
  };
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

/** Turns the entities of a reply, whose offsets count code points, into spans in UTF-16 units. */
function spansOf(text: string, entities: z.infer<typeof replySchema>): SensitiveSpan[] {
  const offsets = [0];
  for (const sign of text) offsets.push(offsets.at(-1)! + sign.length);
  return entities.flatMap(({ entity_type: type, start, end }) => {
    const [from, to] = [offsets[start], offsets[end]];
    if (IGNORED.has(type) || from === undefined || to === undefined || from >= to) return [];
    return [{ kind: KINDS.get(type) ?? ('other_personal' as const), start: from, end: to }];
  });
}
