import { isDeepStrictEqual } from 'node:util';
import { v7 as uuidv7 } from 'uuid';
import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { MIN_JUDGED_RECALLS } from '../retrieve/learn-weights.ts';
import { DEFAULT_OPTIONS } from '../retrieve/options.ts';
import { PROFILE_WEIGHTS, weightsOf } from '../retrieve/raw-score.ts';
import type {
  Learned,
  LearnedOptions,
  LearnedState,
  Learning,
  LearningOutcome,
  Profile,
  RetrievalOptions,
} from '../types.ts';
import { readRetrievalDefaults } from '../control/retrieval-defaults.ts';
import type { TenantOptions } from './tenant-options.ts';

/**
 * Makes the methods by which a tenant learns weights from feedback. A proposal changes no answer until it is accepted.
 */
export function createLearningMethods(
  options: TenantOptions,
  { putRetrievalDefaults }: Pick<Tenant, 'putRetrievalDefaults'>,
): Pick<Tenant, keyof Learning> {
  const { id: tenantId, path, config, control, clock, readers, writer } = options;
  const getLearned = (id: string) => readers.readFew(path, 'getLearned', { id });
  const defaults = () => readRetrievalDefaults(control, tenantId);
  const present = (): { readonly profile: Profile; readonly present: LearnedOptions } => {
    const { profile = DEFAULT_OPTIONS.profile, weights = {}, vectorWeight = null, ...rest } = defaults();
    const { minScore = config.OM_MIN_SCORE } = rest;
    const read = Object.entries(weights).filter(([name]) => name in PROFILE_WEIGHTS[profile]);
    return { profile, present: { weights: weightsOf(profile, Object.fromEntries(read)), vectorWeight, minScore } };
  };

  async function learnWeights(): Promise<LearningOutcome> {
    await options.recalls.flush(options.path);
    const { profile, present: before } = present();
    const found = await readers.read(path, 'learnWeights', { profile, present: before });
    if ('tooFew' in found) return { learned: null, reason: tooFew(found.tooFew, profile) };
    const { better: after, report } = found;
    if (after === null) return { learned: null, reason: noBetter(report) };
    const fields = { id: uuidv7(), at: clock.now(), state: 'proposed', replaced: null } as const;
    const learned: Learned = { ...fields, profile, before, after, report };
    await writer.write(path, 'putLearned', learned);
    return { learned, reason: null };
  }

  async function move(id: string, from: LearnedState, to: LearnedState): Promise<Learned> {
    const { replaced } = await getLearned(id);
    await writer.write(path, 'moveLearned', { id, from, to, replaced });
    return getLearned(id);
  }

  return {
    learnWeights,
    listLearned: () => readers.readFew(path, 'listLearned', {}),
    async acceptLearned(id, how = {}) {
      const learned = await getLearned(id);
      requireState(learned, 'proposed');
      const { replaced: noted } = learned;
      // An acceptance that was broken off has noted what it replaces; if the defaults are as it wanted them, it ends.
      if (noted === null || !isDeepStrictEqual(defaults(), accepted(noted, learned))) {
        if (!isDeepStrictEqual(present(), { profile: learned.profile, present: learned.before })) {
          throw new EngineError('conflict', 'the defaults were changed after this was learned: learn again');
        }
        const replaced = defaults();
        await writer.write(path, 'moveLearned', { id, from: 'proposed', to: 'proposed', replaced });
        await failpoint('before-defaults');
        await putRetrievalDefaults(accepted(replaced, learned), how);
        await failpoint('after-defaults');
      }
      return move(id, 'proposed', 'accepted');
    },
    async revertLearned(id, how = {}) {
      const learned = await getLearned(id);
      requireState(learned, 'accepted');
      const { replaced } = learned;
      const isUndone = isDeepStrictEqual(defaults(), replaced);
      if (replaced === null || !(isUndone || isDeepStrictEqual(defaults(), accepted(replaced, learned)))) {
        throw new EngineError('conflict', 'the defaults were changed after the acceptance: set them as you want them');
      }
      await failpoint('before-defaults');
      await putRetrievalDefaults(replaced, { ...how, force: true });
      await failpoint('after-defaults');
      return move(id, 'accepted', 'reverted');
    },
  };
}

/**
 * Returns a tenant's query defaults with the weights, the vector weight (if it has one) and the least score of an
 * accepted proposal. Weights of other profiles and all other options stay.
 */
function accepted(
  defaults: RetrievalOptions,
  { after: { weights, vectorWeight, minScore } }: Learned,
): RetrievalOptions {
  return {
    ...defaults,
    weights: { ...defaults.weights, ...weights },
    minScore,
    ...(vectorWeight === null ? {} : { vectorWeight }),
  };
}

function requireState({ state }: Learned, wanted: Learned['state']): void {
  if (state !== wanted) throw new EngineError('conflict', `it is ${state}, not ${wanted}`);
}

function tooFew(recalls: number, profile: Profile): string {
  return (
    `learning needs at least ${MIN_JUDGED_RECALLS} recalls of the profile ${profile} with feedback on a match that ` +
    `was used and on one that was useless or wrong; there are ${recalls}`
  );
}

function noBetter({ heldOut, before, after }: Learned['report']): string {
  return (
    `no better weights were found: on the ${heldOut} latest recalls the present ones put ` +
    `${percent(before.order)} of the pairs in the right order, the learned ones ${percent(after.order)}`
  );
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
