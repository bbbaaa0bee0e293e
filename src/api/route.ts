import type { Request, Response } from 'express';
import type { Principal, Role } from '../engine/control/control-database.ts';
import type { Engine, Tenant } from '../engine/engine.ts';

/** What the app is built from. */
export interface ApiContext {
  readonly engine: Engine;
  readonly ready: () => Readiness;
  /** Every registry of the process in Prometheus's text format. */
  readonly metricsText: () => Promise<string>;
  readonly version: string;
  /** Aborted when the server stops: event streams end and waits are cut short. */
  readonly stop: AbortSignal;
}

/** Whether this process should be sent requests, and if not, why: one short reason each, such as `draining`. */
export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
}

/**
 * Who may call a route: anyone, the holder of any key, or of a key with at least this role. `OM_PUBLIC_READS` opens `read`
 * routes of the default tenant to everyone, `key` routes never.
 */
export type Access = 'anyone' | 'key' | Role;

export interface Call {
  readonly api: ApiContext;
  readonly request: Request;
  readonly response: Response;
}

/** A call whose key was accepted. The tenant comes from the key and from nothing else. */
export interface TenantCall extends Call {
  readonly principal: Principal;
  readonly tenant: Tenant;
}

export type Route =
  | {
      readonly method: Method;
      readonly path: string;
      readonly access: 'anyone';
      readonly handle: (call: Call) => void | Promise<void>;
    }
  | {
      readonly method: Method;
      readonly path: string;
      readonly access: Exclude<Access, 'anyone'>;
      readonly handle: (call: TenantCall) => void | Promise<void>;
    };

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
