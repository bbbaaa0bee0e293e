import type { ReembedItem } from '../../api/schemas/providers.ts';
import type { EmbeddingModel } from '../../engine/index.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { count, counted, print, red } from '../terminal.ts';

export interface ReembedOptions extends ConnectionOptions {
  readonly status?: boolean;
  readonly pause?: boolean;
  readonly cancel?: boolean;
  readonly withoutRefused?: boolean;
  readonly force?: boolean;
}

const PHASES = { embed: 'embedding', link: 'linking again', drop: 'deleting the old vectors' } as const;

/**
 * Runs `cairn reembed`: prints an estimate and starts to replace the embedding model, or resumes such a change. With
 * options it prints the progress, pauses the change or cancels it.
 */
export async function reembed(options: ReembedOptions): Promise<void> {
  const client = connect(options);
  if (options.cancel) return show(await client.cancelReembed());
  if (options.pause) return show(await client.pauseReembed());
  const before = await client.getReembedStatus();
  if (options.status) return show(before);
  if (before.state === 'needed') show(before);
  const { withoutRefused, force } = options;
  const body = { ...(withoutRefused ? { without_refused: true } : {}), ...(force ? { force: true } : {}) };
  show(await client.startReembed(Object.keys(body).length === 0 ? undefined : body));
}

function show(reply: ReembedItem): void {
  const { state, phase, live, configured, done, total, failed, estimate, error } = reply;
  if (state === 'current') print(`All vectors are by ${named(live)}; nothing has to be embedded again.`);
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
        `${counted(failed, 'memory', 'memories')} failed: \`cairn jobs list --state dead\` shows why, ` +
          '`cairn jobs retry --state dead` tries again',
      ),
    );
  if (error !== null) print(red(error));
}

function left({ remaining_ms: ms }: ReembedItem): string {
  return ms === null ? '' : `, ${count(Math.ceil(ms / 1_000))} s left`;
}

function named(model: EmbeddingModel | null): string {
  if (model === null) return 'nothing';
  if (model.sectors === undefined) return `${model.provider} ${model.model} (${model.dimensions} dimensions)`;
  const sectors = Object.entries(model.sectors).map(([sector, name]) => `${sector} ${name}`);
  return `${model.provider} (${sectors.join(', ')})`;
}
