import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  /** In the words of the plugin that refuses. */
  inUse: [409, 'E_USER_IN_USE', '{reason}']
})
