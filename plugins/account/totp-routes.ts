import { identityProblems, locked, proofProblems } from 'busbar/api/identity'
import { allow, type RouteDeclarer, reply } from 'busbar/sdk'
import type { Account } from './account.js'
import { clientOf } from './account-service.js'
import {
  enrollBody,
  enrollment,
  enrollmentVerified,
  newRecoveryCodes,
  ownProofBody,
  totpDisabled,
  totpStatus,
  verifyEnrollmentBody
} from './schemas.js'

const group = 'Profile'
/** Open to who still has to set up a second factor that the platform asks for. */
const access = allow.session({ project: 'none', whileEnrolling: true })

export function totpRoutes(route: RouteDeclarer<Account>) {
  route({
    method: 'GET',
    url: '/api/auth/totp',
    group,
    operationId: 'GetTOTPStatus',
    summary: 'Get TOTP Status',
    description: 'Whether the user signs in with a second factor.',
    access,
    schema: { response: { 200: totpStatus } },
    handler: async ({ caller }, { identity }) => await identity.totpStatus(caller.user.id)
  })
  route({
    method: 'POST',
    url: '/api/auth/totp/enroll',
    group,
    operationId: 'EnrollTOTP',
    summary: 'Enroll TOTP',
    description:
      'Makes a secret for an authenticator app. The factor counts once a code of it is verified; enrolling again before that replaces the secret.',
    problems: [...proofProblems, identityProblems.totpEnabled],
    access,
    schema: { body: enrollBody, response: { 200: enrollment } },
    audit: { action: 'totp.enrollment_started', resource: 'user' },
    handler: async (request, { identity }) =>
      await identity.enrollTotp(request.caller, request.body.password, clientOf(request))
  })
  route({
    method: 'POST',
    url: '/api/auth/totp/enroll/verify',
    group,
    operationId: 'VerifyTOTPEnrollment',
    summary: 'Verify TOTP Enrollment',
    description: 'Turns the second factor on. Other sessions of the user end, and this one gets new cookies.',
    problems: [
      identityProblems.wrongCode,
      identityProblems.codeReused,
      identityProblems.sessionEnded,
      identityProblems.totpNotEnrolled,
      identityProblems.totpEnabled,
      locked
    ],
    access,
    schema: { body: verifyEnrollmentBody, response: { 200: enrollmentVerified } },
    audit: { action: 'totp.enabled', resource: 'user' },
    handler: async (request, { identity }) => {
      const { recoveryCodes, grant } = await identity.verifyTotp(
        request.caller,
        request.body.code,
        clientOf(request)
      )
      return reply(
        200,
        { recovery_codes: [...recoveryCodes], session: grant.result },
        { cookies: grant.cookies }
      )
    }
  })
  route({
    method: 'POST',
    url: '/api/auth/totp/disable',
    group,
    operationId: 'DisableTOTP',
    summary: 'Disable TOTP',
    description:
      'Turns the second factor off; its secret and recovery codes are gone. Other sessions of the user end, and this one gets new cookies.',
    problems: [...proofProblems, identityProblems.totpDisabled],
    access,
    schema: { body: ownProofBody, response: { 200: totpDisabled } },
    audit: { action: 'totp.disabled', resource: 'user' },
    handler: async (request, { identity }) => {
      const { result, cookies } = await identity.disableTotp(request.caller, request.body, clientOf(request))
      return reply(200, { status: 'disabled', session: result }, { cookies })
    }
  })
  route({
    method: 'POST',
    url: '/api/auth/totp/recovery-codes',
    group,
    operationId: 'RegenerateRecoveryCodes',
    summary: 'Regenerate Recovery Codes',
    description: 'Makes ten new recovery codes; the former ones are void.',
    problems: [...proofProblems, identityProblems.totpDisabled],
    access,
    schema: { body: ownProofBody, response: { 200: newRecoveryCodes } },
    audit: { action: 'totp.recovery_codes_regenerated', resource: 'user' },
    handler: async (request, { identity }) => {
      const codes = await identity.regenerateRecoveryCodes(request.caller, request.body, clientOf(request))
      return { recovery_codes: [...codes] }
    }
  })
}
