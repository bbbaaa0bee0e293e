import type { LearnedItem } from '../../api/schemas/learned.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { bold, dim, print, table, yellow } from '../terminal.ts';

export interface LearnOptions extends ConnectionOptions {
  readonly list?: boolean;
  /** Id of a proposal to accept. */
  readonly accept?: string;
  /** Id of an accepted proposal that is to be reverted. */
  readonly revert?: string;
  readonly json?: boolean;
}

/**
 * Runs `cairn learn`: learns ranking weights from feedback and prints them as a proposal. With an option it lists all
 * proposals, accepts one (the tenant's queries then use it), or reverts an accepted one.
 */
export async function learn({ list, accept, revert, json, ...connection }: LearnOptions): Promise<void> {
  const client = connect(connection, process.env, 'patient');
  const show = (reply: object, lines: readonly string[]) => print(...(json ? [JSON.stringify(reply, null, 2)] : lines));
  if (accept !== undefined || revert !== undefined) {
    const reply = await (accept === undefined
      ? client.revertLearned({ id: revert! })
      : client.acceptLearned({ id: accept }));
    return show(reply, describe(reply));
  }
  if (list) {
    const reply = await client.listLearned();
    const lines = reply.items.flatMap((item, at) => [...(at === 0 ? [] : ['']), ...describe(item)]);
    return show(reply, lines.length === 0 ? ['Nothing was learned yet.'] : lines);
  }
  const reply = await client.learnWeights();
  const { learned, reason } = reply;
  if (learned === null) return show(reply, [`No proposal: ${reason}.`]);
  show(reply, [...describe(learned), '', `To use them: cairn learn --accept ${learned.id}`]);
}

function describe({ id, at, state, profile, before, after, report }: LearnedItem): string[] {
  const share = (value: number) => `${(100 * value).toFixed(1)} %`;
  const change = (name: string, from: number | null | undefined, to: number | null) => [
    `  ${name}`,
    String(from ?? (name === 'vector_weight' ? "the embedder's" : '')),
    from === to ? dim('the same') : yellow(String(to)),
  ];
  const measures = (['order', 'wanted', 'unwanted'] as const).map((name) => [
    `  ${name}`,
    share(report.before[name]),
    share(report.after[name]),
  ]);
  return [
    `${bold(id)}  ${state}  ${dim(new Date(at).toISOString())}`,
    dim(`  ${profile}, learned from ${report.learned_from} recalls, measured on the ${report.held_out} after them`),
    ...table(
      [
        ...Object.entries(after.weights).map(([name, weight]) => change(name, before.weights[name], weight)),
        change('vector_weight', before.vector_weight, after.vector_weight),
        change('min_score', before.min_score, after.min_score),
        ...measures,
      ],
      '<>>',
    ),
    dim(`  no better in ${share(report.chance)} of the draws`),
  ];
}
