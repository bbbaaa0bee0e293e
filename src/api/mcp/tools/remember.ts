import { z } from 'zod';
import {
  type AddOutcome,
  EngineError,
  jsonOf,
  JsonText,
  type Memory,
  type NewMemory,
  type Tenant,
} from '../../../engine/index.ts';
import { isErrorCode } from '../../http-errors.ts';
import { answerTurn } from '../../read-turn.ts';
import { takeTokens } from '../../take-tokens.ts';
import type { TenantCall } from '../../route.ts';
import { LIMITS } from '../../schemas/value-limits.ts';
import { content } from '../../schemas/memories.ts';
import { choice, fraction, givenId, label, metadata, tags } from '../../schemas/values.ts';
import { toNewMemory } from '../../wire/memories.ts';
import { DESTROYS, isoTime, tool, type ToolRun, WRITES } from '../tool.ts';
import { readWhenDone } from './await-work.ts';

export const remember = tool({
  name: 'remember',
  title: 'Remember',
  description:
    'Store one fact, preference, decision or event in long-term memory, as a sentence that stands by itself. ' +
    'Storing the same text again only reinforces the memory.',
  needs: 'add',
  limited: 'adds',
  // Each further call reinforces the memory.
  annotations: WRITES,
  input: z.strictObject({
    content: content.describe('The text, kept verbatim.'),
    tags: tags.optional(),
    type: label(LIMITS.labelCharacters).optional().describe('Your own kind of memory.'),
    event_time: isoTime.optional().describe('When it happened, ISO 8601; now by default.'),
    expires_at: isoTime.optional().describe('Forgotten from this time on.'),
    session_id: givenId.optional().describe('Conversation or task that it belongs to.'),
    importance: fraction.optional(),
    metadata: metadata.optional(),
  }),
  async run(call, input, run) {
    if (input.expires_at !== undefined && input.expires_at <= call.api.engine.clock.now())
      throw new EngineError('invalid', 'expires_at: this time is over, so nothing was stored; expected a later one');
    const { outcome, token } = await addOne(call.tenant, toNewMemory(input));
    if (outcome.kind === 'duplicate')
      return `Known already as memory ${outcome.id}, which was reinforced.${screeningOf(outcome)}`;
    return `Stored as memory ${outcome.id}; ${await progressOf(call, { outcome, token, run })}${screeningOf(outcome)}`;
  },
});

export const updateMemory = tool({
  name: 'update_memory',
  title: 'Update a memory',
  description:
    'Change a memory. Mode correct fixes text or tags; mode supersede is for a fact that has changed: it stores ' +
    'the new text as the successor. The old text stays in the history.',
  needs: 'write',
  // A correction that changes nothing writes nothing, and a second supersession is refused.
  annotations: { ...WRITES, idempotentHint: true },
  input: z
    .strictObject({
      id: givenId.describe('Memory id.'),
      content: content.optional().describe('The new text.'),
      tags: tags.optional().describe('The new tags, instead of the old ones.'),
      mode: choice(['correct', 'supersede']).describe('correct or supersede.'),
    })
    .refine((input) => input.content !== undefined || input.tags !== undefined, 'expected content or tags')
    .refine((input) => input.mode === 'correct' || input.content !== undefined, 'supersede: expected content'),
  async run(call, { id, content, tags, mode }, run) {
    if (mode === 'supersede') return supersede(call, { id, content: content!, tags }, run);
    takeTokens(call, 'adds', 1);
    const corrected = await correct(call.tenant, { id, content, tags });
    await answerTurn();
    return (
      `Memory ${id} is at version ${corrected.version}; get_memory with history shows earlier ones.` +
      aboutValue(corrected) +
      screeningOf(corrected)
    );
  },
});

export const forget = tool({
  name: 'forget',
  title: 'Forget a memory',
  description: 'Erase one memory for good, with its history. Only when the user asks for it.',
  needs: 'write',
  limited: 'adds',
  extra: 'forget',
  annotations: { ...DESTROYS, idempotentHint: true },
  input: z.strictObject({ id: givenId.describe('Memory id.') }),
  async run({ tenant }, { id }) {
    const { memories, vectors, edges, revisions, erasure } = await tenant.deleteMemory(id);
    return (
      `Erased memory ${id}: ${memories} memories, ${vectors} vectors, ${edges} links, ${revisions} revisions.` +
      (erasure === undefined ? '' : ` Receipt, told this once, to be given to the user: ${erasure}`)
    );
  },
});

interface Correction {
  readonly id: string;
  readonly content: string | undefined;
  readonly tags: string[] | undefined;
}

/**
 * Changes the text or tags of a memory. Returns only what the answer says of it, and not the memory: thousands of
 * answers may wait for their turns, with half a MB each.
 */
async function correct(tenant: Tenant, { id, content, tags }: Correction) {
  const memory = await tenant.patchMemory(id, { content, tags });
  const { version, screened } = memory;
  const value = content === undefined ? null : jsonOf(memory, 'value');
  return { version, screened, item: value === null ? undefined : { value, content: memory.content } };
}

/** Returns what a successor takes from the memory that it supersedes, without the texts. */
async function predecessor(tenant: Tenant, id: string) {
  const { status, tags, type, userId, sessionId } = await tenant.getMemory(id);
  return { status, tags, type, userId, sessionId };
}

/**
 * Stores a new memory and marks the old memory `id` as superseded by it, in one commit. The new memory gets the user,
 * session and type of the old one, and also its tags unless `tags` is given. If several calls supersede the same memory
 * at once, one stores its text and the others are refused with `conflict`.
 * @returns a sentence for the model about what was stored
 * @throws EngineError `conflict` if the old memory is superseded already; `not_found` if it does not exist
 */
async function supersede(
  call: TenantCall,
  { id, content, tags }: { readonly id: string; readonly content: string; readonly tags: string[] | undefined },
  run: ToolRun,
): Promise<string> {
  const { tenant } = call;
  const old = await predecessor(tenant, id);
  if (old.status === 'superseded') throw new EngineError('conflict', await successorSentence(tenant, id));
  takeTokens(call, 'adds', 1);
  const { outcome, token } = await addOne(tenant, {
    ...toNewMemory({ content, tags: tags ?? [...old.tags], type: old.type }),
    userId: old.userId,
    sessionId: old.sessionId,
    supersedes: id,
  });
  const progress =
    outcome.kind === 'accepted' ? await progressOf(call, { outcome, token, run }) : 'it was there already';
  return `Memory ${id} is superseded by memory ${outcome.id}; ${progress}${screeningOf(outcome)}`;
}

/** Returns a sentence that says that a memory is superseded, with the id of the memory that supersedes it. */
async function successorSentence(tenant: Tenant, id: string): Promise<string> {
  const links = await tenant.listLinks(id);
  const successor = links.find(({ type, direction }) => type === 'supersedes' && direction === 'in');
  const advice = successor === undefined ? '' : `: update memory ${successor.id} instead`;
  return `this memory has a successor already${advice}`;
}

/**
 * Returns a sentence about the JSON value of a memory whose text was changed, as it may still have the old text. Only
 * items (memories stored under a key) have a value; for other memories, and if the text was not changed, it returns ''.
 */
function aboutValue({ item }: { readonly item?: Pick<Memory, 'value' | 'content'> | undefined }): string {
  if (item === undefined) return '';
  const { value, content } = item;
  // A long value is a text already, which is not parsed for this.
  const text = value instanceof JsonText ? value.text : JSON.stringify(value);
  return text.includes(JSON.stringify(content))
    ? ' It is an item, whose value has the new text, too.'
    : ' It is an item, whose value stands apart from the text and stays as it was.';
}

type Stored = Exclude<AddOutcome, { kind: 'rejected' }>;

async function addOne(tenant: Tenant, memory: NewMemory): Promise<{ outcome: Stored; token: string | null }> {
  const { outcomes, token } = await tenant.addMemories([memory]);
  const outcome = outcomes[0]!;
  if (outcome.kind !== 'rejected') return { outcome, token };
  const { code, message } = outcome.error;
  throw new EngineError(isErrorCode(code) ? code : 'invalid', message);
}

/**
 * Waits up to 4 s for the background work of a new memory, and returns the end of a sentence about it that says how far
 * the work is.
 */
async function progressOf(
  call: TenantCall,
  {
    outcome: { id, jobId },
    token,
    run,
  }: {
    readonly outcome: Extract<AddOutcome, { kind: 'accepted' }>;
    readonly token: string | null;
    readonly run: ToolRun;
  },
): Promise<string> {
  const describe = async () => {
    const { step, state } = await call.tenant.getJob(jobId);
    return `step ${step} is ${state}`;
  };
  const failed = `found by its words only, as its job ${jobId} failed.`;
  const finished = await readWhenDone(call, { ...run, token, describe }, async () => {
    // A key that only adds reads no memory, but the jobs of its own.
    if (call.principal.role === 'add')
      return (await call.tenant.getJob(jobId)).state === 'done' ? 'it is ready.' : failed;
    const { state, sectors } = await call.tenant.getMemory(id);
    return state === 'failed' ? failed : `it is ${state} (${sectors.join(', ')}).`;
  });
  return (
    finished ??
    `recall finds its words now; its meaning follows: job ${jobId} is queued, and recall with token ` +
      `${token ?? ''} waits for it.`
  );
}

/** Returns a sentence that says which sensitive values in a text were redacted or marked; '' if none was found. */
function screeningOf({ screened }: { readonly screened?: Stored['screened'] | undefined }): string {
  const { redacted = {}, marked = [] } = screened ?? {};
  const kinds = Object.entries(redacted).map(([kind, count]) => `${count} ${kind}`);
  return (
    (kinds.length === 0 ? '' : ` Redacted before it was stored: ${kinds.join(', ')}.`) +
    (marked.length === 0 ? '' : ` Marked as sensitive: ${marked.join(', ')}.`)
  );
}
