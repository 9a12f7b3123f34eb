import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  applicationMissing: [404, 'E_APPLICATION_NOT_FOUND', 'application {applicationId} does not exist']
})
