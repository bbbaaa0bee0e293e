import { EngineError } from '../errors.ts';
import { takeTurn } from '../turns.ts';
import { MAX_METADATA_BYTES, type Json, type Metadata, type NewMemory, type SensitiveKind } from '../types.ts';
import type { Screening } from './screening.ts';

/**
 * The fields of a memory, a patch or a document that may contain sensitive values. A field that is absent stays absent.
 */
export type ScreenedFields = {
  readonly [
    name in 'content' | 'title' | 'gist' | 'tags' | 'files' | 'type' | 'entities' | 'metadata' | 'externalId'
  ]?: NewMemory[name] | undefined;
} & {
  readonly value?: Json | undefined;
  readonly authors?: readonly string[] | undefined;
  /** Headings above a part of a document, the outermost first. */
  readonly headings?: readonly string[] | undefined;
  readonly url?: string | undefined;
};

/**
 * Screens the fields of a memory, a patch or a document that a caller wrote. `user_id` and `session_id` are never
 * screened, since a caller finds memories by them, and with a marker in their place two people's memories would be
 * mixed. In an `external_id` and a URL, a value that other fields would have redacted is refused, since no memory could
 * be found and no page fetched by a marker.
 * @returns the fields to store, with redacted values replaced by markers
 * @throws EngineError `unprocessable` if the policy refuses a kind that was found, or would redact an external id or a
 *   URL; else as `Screening.find`
 */
export async function screenFields<T extends ScreenedFields>(screening: Screening, fields: T): Promise<T> {
  const screened: { -readonly [name in keyof ScreenedFields]: NonNullable<ScreenedFields[name]> } = {};
  for (const name of ['content', 'title', 'gist', 'type'] as const) {
    const text = fields[name];
    if (typeof text === 'string') screened[name] = await screening.screen(name, text);
  }
  for (const name of ['tags', 'files', 'entities', 'authors'] as const) {
    const list = fields[name];
    if (list) screened[name] = await screenList(screening, name, list);
  }
  if (fields.headings) {
    const headings = [];
    for (const heading of fields.headings) headings.push(await screening.screen('heading', heading));
    screened.headings = headings;
  }
  if (fields.metadata !== undefined) {
    screened.metadata = (await screenJson(screening, 'metadata', fields.metadata)) as Metadata;
  }
  if (fields.value !== undefined)
    screened.value = (await screenJson(screening, 'value', fields.value)) as NonNullable<Json>;
  if (typeof fields.externalId === 'string') await requireUnchanged(screening, 'external_id', fields.externalId);
  if (typeof fields.url === 'string') await requireUnchanged(screening, 'url', fields.url);
  return { ...fields, ...screened };
}

/**
 * Adds kinds of sensitive values that were marked to metadata, under the key `sensitive`. If a list stands there
 * already, they join it. The metadata is returned unchanged if there are no kinds, or if it would exceed 16 KiB.
 */
export function markMetadata(metadata: Metadata, kinds: readonly SensitiveKind[]): Metadata {
  if (kinds.length === 0) return metadata;
  const { sensitive: earlier } = metadata;
  const noted = { ...metadata, sensitive: joinMarks(earlier, kinds) };
  // Metadata that is full cannot hold the mark, and a memory must not be lost for that.
  return Buffer.byteLength(JSON.stringify(noted)) > MAX_METADATA_BYTES ? metadata : noted;
}

/**
 * Returns the kinds that metadata name in `sensitive` together with newly marked ones, sorted, each once.
 * @param earlier value of `sensitive`; anything but a list is replaced
 */
export function joinMarks(earlier: Json | undefined, kinds: readonly SensitiveKind[]): Json[] {
  return [...new Set<Json>([...(Array.isArray(earlier) ? (earlier as readonly Json[]) : []), ...kinds])].sort();
}

async function screenList(screening: Screening, field: string, list: readonly string[]): Promise<string[]> {
  const screened = [];
  for (const text of list) screened.push(await screening.screen(field, text));
  return [...new Set(screened)];
}

/**
 * Screens a JSON value: its keys, its strings (each together with its key), and positive safe integers of at least 11
 * digits, which may be card numbers.
 */
async function screenJson(screening: Screening, field: string, value: Json, key = ''): Promise<Json> {
  const context = key === '' ? '' : `${key}: `;
  // Lists of lists have no text, whose search would let others take their turn.
  await takeTurn();
  if (typeof value === 'string') return screening.screen(field, value, context);
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1e10) {
    const text = await screening.screen(field, String(value), context);
    return text === String(value) ? value : text;
  }
  if (Array.isArray(value)) {
    const items = [];
    for (const item of value as readonly Json[]) items.push(await screenJson(screening, field, item, key));
    return items;
  }
  if (typeof value !== 'object' || value === null) return value;
  const entries: [string, Json][] = [];
  for (const [name, item] of Object.entries(value)) {
    entries.push([await screening.screen(field, name), await screenJson(screening, field, item, name)]);
  }
  return Object.fromEntries(entries);
}

async function requireUnchanged(screening: Screening, field: 'external_id' | 'url', text: string): Promise<void> {
  if ((await screening.screen(field, text)) === text) return;
  const what = field === 'url' ? 'an address' : 'a name';
  throw new EngineError('unprocessable', `${field}: holds a sensitive value, and ${what} cannot be redacted`);
}
