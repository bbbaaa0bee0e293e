import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import type { TenantOptions } from './tenant-options.ts';

type ReflectionMethods = Pick<Tenant, 'reflect' | 'listReflections'>;

/** Makes the methods by which a tenant requests reflections and lists them. */
export function createReflectionMethods(options: TenantOptions): ReflectionMethods {
  const { path, config, readers, writer, dispatcher } = options;
  return {
    async reflect(scope) {
      if (config.OM_LLM_MODEL === undefined) {
        throw new EngineError('invalid', 'there is no language model to reflect by: set OM_LLM_MODEL');
      }
      const queued = await writer.write(path, 'requestReflection', scope);
      dispatcher.dispatch(path, 'reason');
      return queued;
    },
    listReflections: (userId, limit) => readers.readFew(path, 'listReflections', { userId, limit }),
  };
}
