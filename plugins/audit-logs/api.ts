import { extensionPoint } from 'busbar/sdk'

/**
 * What the resources of one kind are called now, keyed by the kind as audit records name it
 * (`application`). Asked for UUIDs only; ids that no longer exist are left out: a record outlives what it names.
 */
export interface ResourceNames {
  namesOf(ids: readonly string[]): Promise<ReadonlyArray<{ readonly id: string; readonly name: string }>>
}
export const resourceNames = extensionPoint<ResourceNames>('audit-logs.resourceNames')
