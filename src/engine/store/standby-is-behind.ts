/**
 * Thrown by a read on a standby that has not yet received what the read needs: a write that the reader must see, the
 * tenant, or the newest schema. The read is tried again, or runs on the primary.
 */
export class StandbyIsBehind extends Error {
  override readonly name = 'StandbyIsBehind';
  constructor(what: string) {
    super(`the standby has not received ${what} yet`);
  }
}
