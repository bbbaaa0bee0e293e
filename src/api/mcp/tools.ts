import { mayDo } from '../access-control.ts';
import type { TenantCall } from '../route.ts';
import type { Extra } from './extras.ts';
import type { Tool } from './tool.ts';
import { whatChanged } from './tools/changes.ts';
import { findEntities } from './tools/entities.ts';
import { ingest } from './tools/ingest.ts';
import { fetchMemory, getMemory, listRecent } from './tools/memories.ts';
import { explainRecall, ratedRecall, rateRecall, recall, search } from './tools/recall.ts';
import { forget, remember, updateMemory } from './tools/remember.ts';

/**
 * All tools, in the order in which they are listed. The names `recall` and `remember` occur in prompts and rules of
 * users, so they must not change.
 */
const TOOLS: readonly Tool[] = [
  recall,
  remember,
  getMemory,
  updateMemory,
  listRecent,
  whatChanged,
  findEntities,
  ingest,
  explainRecall,
  rateRecall,
  forget,
  search,
  fetchMemory,
];

/**
 * Returns the tools that the caller's role allows; extra tools only if they are in `extras`. With the extra `feedback`,
 * the tool `recall` also names the id of its answer, so that the client can rate it.
 */
export function toolsFor({ principal }: TenantCall, extras: ReadonlySet<Extra>): readonly Tool[] {
  return TOOLS.filter(
    ({ needs, extra }) => mayDo(principal.role, needs) && (extra === undefined || extras.has(extra)),
  ).map((tool) => (tool === recall && extras.has('feedback') ? ratedRecall : tool));
}
