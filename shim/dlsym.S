// dlsym and its answer depend on who calls it: everything that is not about a listed name is handed on by a jump, so
// that the real dlsym still sees the program's own return address. Written in assembly because a compiler may turn a
// tail call into a call (-O0, ThreadSanitizer).
#if defined(__x86_64__)
        .text
        .globl  dlsym
        .type   dlsym, @function
dlsym:
        .cfi_startproc
        endbr64
        cmpq    $-1, %rdi               // RTLD_NEXT: the caller's place in the search order decides
        je      .Lhand_on
        testq   %rsi, %rsi
        je      .Lhand_on
        cmpb    $'n', (%rsi)            // nvml
        je      .Lnvml
        cmpb    $'c', (%rsi)            // cu[A-Z]
        jne     .Lhand_on
        cmpb    $'u', 1(%rsi)
        jne     .Lhand_on
        movzbl  2(%rsi), %eax
        subl    $'A', %eax
        cmpl    $25, %eax
        ja      .Lhand_on
        jmp     .Lask
.Lnvml:
        cmpb    $'v', 1(%rsi)
        jne     .Lhand_on
        cmpb    $'m', 2(%rsi)
        jne     .Lhand_on
        cmpb    $'l', 3(%rsi)
        jne     .Lhand_on
.Lask:
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp                // where the answer goes
        .cfi_adjust_cfa_offset 8
        movq    24(%rsp), %rdx          // return address
        movq    %rsp, %rcx
        call    xlog_dlsym              // (handle, name, caller, &answer): 1 when answered
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testl   %eax, %eax
        je      .Lhand_on
        movq    %rdx, %rax
        ret
.Lhand_on:
        movq    xlog_next_dlsym(%rip), %rax
        testq   %rax, %rax
        je      .Lfind
        jmp     *%rax
.Lfind:
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    xlog_find_dlsym
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        jmp     *%rax
        .cfi_endproc
        .size   dlsym, . - dlsym
        .section .note.GNU-stack, "", @progbits
#else
#error "dlsym.S: this processor is not supported yet"
#endif
