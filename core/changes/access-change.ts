/** Who may go where may no longer be what it was: in a project, for a user, or wherever a change may have been missed. */
export type AccessChange =
  | { readonly kind: 'project' | 'user'; readonly id: string }
  | { readonly kind: 'all' }

export const keyOf = (change: AccessChange): string =>
  change.kind === 'all' ? 'all' : `${change.kind}:${change.id}`
