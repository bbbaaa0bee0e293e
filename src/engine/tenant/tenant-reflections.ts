import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import { compileFilter } from '../store/filter.ts';
import { readMemories } from '../store/memories.ts';
import { listReflections } from '../store/reflections.ts';
import type { TenantOptions } from './tenant-options.ts';
import { findUserNo } from '../store/users.ts';

type ReflectionMethods = Pick<Tenant, 'reflect' | 'listReflections'>;

/** Makes the methods by which a tenant requests reflections and lists them. */
export function createReflectionMethods(options: TenantOptions): ReflectionMethods {
  const { path, config, writer, dispatcher } = options;
  const store = () => options.open().store;
  const now = () => options.clock.now();
  return {
    async reflect(scope) {
      if (config.OM_LLM_MODEL === undefined) {
        throw new EngineError('invalid', 'there is no language model to reflect by: set OM_LLM_MODEL');
      }
      const queued = await writer.write(path, 'requestReflection', scope);
      dispatcher.dispatch(path, 'reason');
      return queued;
    },
    async listReflections(userId, limit) {
      const userNo = findUserNo(store(), userId);
      if (userNo === undefined) return [];
      const memoryNos = listReflections(store(), userNo, { visible: compileFilter({}, now()), limit });
      const memories = readMemories(store(), memoryNos, now());
      return memoryNos.flatMap((memoryNo) => memories.get(memoryNo) ?? []);
    },
  };
}
