import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  notFound: [404, 'E_NOT_FOUND', 'notification not found']
})
