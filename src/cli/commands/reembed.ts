import type { ReembedItem } from '../../api/schemas/providers.ts';
import type { EmbeddingModel } from '../../engine/index.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { count, counted, print, red } from '../terminal.ts';

type ReembedReply = ReembedItem;

export interface ReembedOptions extends ConnectionOptions {
  readonly status?: boolean;
  readonly pause?: boolean;
  readonly cancel?: boolean;
  readonly withoutRefused?: boolean;
}

const PHASES = { embed: 'embedding', link: 'linking anew', drop: 'dropping the old vectors' } as const;

/** `cairn reembed`: says what it will take before it begins. */
export async function reembed(options: ReembedOptions): Promise<void> {
  const client = connect(options);
  if (options.cancel) return show(await client.delete<ReembedReply>('/admin/reembed'));
  if (options.pause) return show(await client.post<ReembedReply>('/admin/reembed/pause'));
  const before = await client.get<ReembedReply>('/admin/reembed');
  if (options.status) return show(before);
  if (before.state === 'needed') show(before);
  const body = options.withoutRefused ? { without_refused: true } : undefined;
  show(await client.post<ReembedReply>('/admin/reembed', body));
}

function show(reply: ReembedReply): void {
  const { state, phase, live, configured, done, total, failed, estimate, error } = reply;
  if (state === 'current') print(`All is by ${named(live)}; there is nothing to embed anew.`);
  else if (state === 'needed' && named(live) === named(configured)) {
    print(`${counted(total - done, 'memory', 'memories')} of ${count(total)} without vectors of ${named(live)}.`);
  } else if (state === 'needed') print(`The vectors are by ${named(live)}, the settings name ${named(configured)}.`);
  else
    print(
      `${state}: ${phase === null ? '' : PHASES[phase]}, ${count(done)} of ${counted(total, 'memory', 'memories')}`,
    );
  if (reply.rate_per_second !== null) print(`${count(Math.round(reply.rate_per_second))} a second${left(reply)}`);
  if (estimate !== null) {
    print(`To embed: ${counted(estimate.memories, 'memory', 'memories')}, some ${count(estimate.tokens)} tokens.`);
  }
  if (failed > 0)
    print(
      red(
        `${counted(failed, 'memory', 'memories')} failed: \`cairn jobs list --state dead\` says why, \`cairn jobs retry --state dead\` tries again`,
      ),
    );
  if (error !== null) print(red(error));
}

function left({ remaining_ms: ms }: ReembedReply): string {
  return ms === null ? '' : `, ${count(Math.ceil(ms / 1_000))} s left`;
}

function named(model: EmbeddingModel | null): string {
  if (model === null) return 'nothing';
  if (model.sectors === undefined) return `${model.provider} ${model.model} (${model.dimensions} dimensions)`;
  const sectors = Object.entries(model.sectors).map(([sector, name]) => `${sector} ${name}`);
  return `${model.provider} (${sectors.join(', ')})`;
}
